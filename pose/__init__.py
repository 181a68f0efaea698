"""The domain: data types, geometry, estimators, the temporal lifter, and the pipeline that joins them."""

import os

# Read by ONNX Runtime when it is loaded. Without it some builds write an id of the machine into the home folder and
# send reports to their vendor, and no function of theirs stops that afterwards. Who wants it sets the variable to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

# Read by OpenCV when it is loaded: it decodes no picture of more pixels, whatever a file announces. Its own limit, of
# 2**30, is 3 GiB. Who has larger pictures sets the variable.
os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", "100000000")
