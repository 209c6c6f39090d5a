package example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class DeploymentTest {
  static FakeCluster cluster;

  @BeforeAll
  static void start() throws IOException {
    cluster = FakeCluster.start("--nodes=3");
  }

  @AfterAll
  static void stop() throws IOException {
    if (cluster != null) { // it has started
      cluster.close();
    }
  }

  @Test
  void becomesAvailable() {
    Deployment web = new DeploymentBuilder().withNewMetadata().withName("web").endMetadata()
        .withNewSpec().withReplicas(3).withNewSelector().addToMatchLabels("app", "web").endSelector()
        .withNewTemplate().withNewMetadata().addToLabels("app", "web").endMetadata()
        .withNewSpec().addNewContainer().withName("web").withImage("nginx").endContainer().endSpec().endTemplate().endSpec().build();
    try (KubernetesClient client = new KubernetesClientBuilder().build()) {
      client.apps().deployments().inNamespace("default").resource(web).create();
      client.apps().deployments().inNamespace("default").withName("web").waitUntilReady(60, TimeUnit.SECONDS);
      List<Pod> pods = client.pods().inNamespace("default").withLabel("app", "web").list().getItems();
      assertEquals(List.of("Running", "Running", "Running"), pods.stream().map(pod -> pod.getStatus().getPhase()).toList());
    }
  }
}
