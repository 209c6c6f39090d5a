// @kubernetes/client-node: a typed client, a watch, an informer.
import * as k8s from "@kubernetes/client-node";

const config = new k8s.KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(k8s.CoreV1Api);
const namespace = "default";
const body = (value) => ({ metadata: { name: "node", labels: { by: "node" } }, data: { k: value } });

const seen = [];
let wake = () => {};
const note = (event) => {
  seen.push(event);
  wake();
};
const expect = async (event) => {
  const deadline = AbortSignal.timeout(20000);
  while (seen.length === 0) {
    await new Promise((resolve, reject) => {
      wake = resolve;
      deadline.onabort = () => reject(new Error(`nothing came, expected ${event}`));
    });
  }
  const found = seen.shift();
  if (found !== event) throw new Error(`expected ${event}, got ${found}`);
};

const watch = new k8s.Watch(config);
const open = await watch.watch(
  `/api/v1/namespaces/${namespace}/configmaps`,
  { labelSelector: "by=node" },
  (type, found) => note(`${type} ${found.data.k}`),
  () => {},
);
await core.createNamespacedConfigMap({ namespace, body: body("1") });
await expect("ADDED 1");
await core.replaceNamespacedConfigMap({ name: "node", namespace, body: body("2") });
await expect("MODIFIED 2");
await core.deleteNamespacedConfigMap({ name: "node", namespace });
await expect("DELETED 2");
open.abort();

const list = () => core.listNamespacedConfigMap({ namespace, labelSelector: "by=node" });
const informer = k8s.makeInformer(config, `/api/v1/namespaces/${namespace}/configmaps`, list, "by=node");
informer.on("add", (found) => note(`add ${found.data.k}`));
informer.on("delete", (found) => note(`delete ${found.data.k}`));
await informer.start();
await core.createNamespacedConfigMap({ namespace, body: body("3") });
await expect("add 3");
await core.deleteNamespacedConfigMap({ name: "node", namespace });
await expect("delete 3");
await informer.stop();
console.log("client-node: ok");
process.exit(0);
