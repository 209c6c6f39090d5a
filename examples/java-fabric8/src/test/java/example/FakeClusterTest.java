package example;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.io.IOException;
import java.net.Socket;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

class FakeClusterTest {
  @Test
  void isUsedAndStopped() throws Exception {
    String url;
    try (FakeCluster cluster = FakeCluster.start()) {
      url = cluster.url();
      cluster.settle();
      cluster.advance("1h");
      cluster.fault("{\"verb\": \"get\", \"status\": 429, \"times\": 1}");
      IOException refused = assertThrows(IOException.class, () -> cluster.fault("{\"verb\": \"fly\"}"));
      assertTrue(refused.getMessage().contains("fly"), refused.getMessage());
      assertEquals(cluster.kubeconfig(), System.getProperty("kubeconfig"));
      assertFalse(cluster.token().isEmpty());
    }
    waitUntilGone(url);
    assertFalse(Files.exists(Path.of(System.getProperty("kubeconfig"))), "clients would find a cluster");
  }

  /** Is run in a process of its own, which is killed. */
  public static final class Victim {
    public static void main(String[] arguments) throws Exception {
      FakeCluster cluster = FakeCluster.start("--controllers=none");
      System.out.println(cluster.url());
      Thread.sleep(Long.MAX_VALUE);
    }
  }

  @Test
  void endsWithAProcessThatIsKilled() throws Exception {
    String classes = Path.of(FakeCluster.class.getProtectionDomain().getCodeSource().getLocation().toURI()).toString();
    Process victim = new ProcessBuilder("java", "-cp", classes, Victim.class.getName()).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    String url = victim.inputReader().readLine();
    victim.destroyForcibly().waitFor();
    waitUntilGone(url);
  }

  @Test
  void saysWhatToInstall() {
    IOException error = assertThrows(IOException.class, () -> FakeCluster.start("no-such-command", List.of()));
    assertTrue(error.getMessage().contains("pip install fakeapiserver"), error.getMessage());
    assertEquals(1, error.getMessage().lines().count());
    assertTrue(System.getProperty("kubeconfig").contains("no-cluster"), "clients would find a cluster");
  }

  @Test
  void refusesOtherMachines() {
    assertThrows(IOException.class, () -> FakeCluster.checkLoopback("https://prod.example.com:6443"));
    assertDoesNotThrow(() -> FakeCluster.checkLoopback("https://127.0.0.1:6443"));
  }

  private static void waitUntilGone(String url) throws InterruptedException {
    URI server = URI.create(url);
    for (int turn = 0; turn < 600; turn++) {
      try (Socket socket = new Socket(server.getHost(), server.getPort())) {
        Thread.sleep(100);
      } catch (IOException gone) {
        return;
      }
    }
    fail(url + " is still there");
  }
}
