// Prints, after RESULT, what three.js makes of a GLB at a moment: for each skin its bones' names and world places, m.
// With three-vrm in FOLDER, also the world places of the bones of a VRM humanoid.
//   node three.mjs FOLDER FILE SECONDS [POSE]     (FOLDER has node_modules/three)
// POSE: JSON of rotations (x, y, z, w) by bone of the humanoid, relative to the T-pose, instead of the animation.
import { existsSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, file, seconds, pose] = process.argv.slice(2);
globalThis.self = globalThis; // which the loader takes for granted
const load = (path) => import(pathToFileURL(`${folder}/node_modules/three/${path}`).href);
const THREE = await load("build/three.module.js");
const { GLTFLoader } = await load("examples/jsm/loaders/GLTFLoader.js");

const data = readFileSync(file);
const buffer = data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
const loader = new GLTFLoader();
const vrmModule = `${folder}/node_modules/@pixiv/three-vrm/lib/three-vrm.module.js`;
if (existsSync(vrmModule)) {
  const { VRMLoaderPlugin } = await import(pathToFileURL(vrmModule).href);
  loader.register((parser) => new VRMLoaderPlugin(parser, { autoUpdateHumanBones: Boolean(pose) }));
}
const gltf = await new Promise((done, failed) => loader.parse(buffer, "", done, failed));
if (pose) {
  const { humanoid } = gltf.userData.vrm;
  const posed = Object.entries(JSON.parse(pose)).map(([bone, rotation]) => [bone, { rotation }]);
  humanoid.setNormalizedPose(Object.fromEntries(posed));
  humanoid.update(); // copies the normalized bones to those of the file
} else {
  const mixer = new THREE.AnimationMixer(gltf.scene);
  mixer.clipAction(gltf.animations[0]).play();
  mixer.setTime(Number(seconds));
}
gltf.scene.updateMatrixWorld(true);
const skins = [];
gltf.scene.traverse((node) => {
  if (node.isSkinnedMesh) {
    const places = node.skeleton.bones.map((bone) => bone.getWorldPosition(new THREE.Vector3()).toArray());
    skins.push({ name: node.name, bones: node.skeleton.bones.map((bone) => bone.name), places });
  }
});
const humanoid = {};
for (const [name, bone] of Object.entries(gltf.userData.vrm?.humanoid.rawHumanBones ?? {})) {
  if (bone) humanoid[name] = bone.node.getWorldPosition(new THREE.Vector3()).toArray();
}
console.log(`RESULT${JSON.stringify({ revision: THREE.REVISION, skins, humanoid })}`);
