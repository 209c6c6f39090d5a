import { BatchV1Api, KubeConfig } from "@kubernetes/client-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FakeCluster } from "./fake-cluster.js";

let cluster;
let batch;

beforeAll(async () => {
  cluster = await FakeCluster.start("--nodes=1", "--stopped-at=2026-01-01T12:30:00Z");
  const config = new KubeConfig();
  config.loadFromDefault();
  batch = config.makeApiClient(BatchV1Api);
});
afterAll(() => cluster.close());

test("a backup is made every hour", async () => {
  const container = { name: "backup", image: "busybox", command: ["true"] };
  const template = { spec: { restartPolicy: "Never", containers: [container] } };
  const spec = { schedule: "0 * * * *", jobTemplate: { spec: { template } } };
  await batch.createNamespacedCronJob({ namespace: "default", body: { metadata: { name: "backup" }, spec } });
  await cluster.settle();

  await cluster.advance("2h"); // it is 14:30

  const { items } = await batch.listNamespacedJob({ namespace: "default" });
  expect(items.map((job) => job.status.succeeded)).toEqual([1, 1]);
  expect(items.map((job) => job.status.startTime.toISOString()).sort()).toEqual(["2026-01-01T13:00:00.000Z", "2026-01-01T14:00:00.000Z"]);
});
