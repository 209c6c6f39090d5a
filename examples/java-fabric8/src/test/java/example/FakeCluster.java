package example;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * Starts {@code fakeapiserver serve} for tests. Copy this file; it needs Java 17 alone.
 *
 * <p>From {@link #start} on, the system properties of fabric8's client lead to the fake cluster, and after {@link #close} to no cluster:
 * never to ~/.kube/config. The server ends with this process, also if it is killed.
 */
public final class FakeCluster implements AutoCloseable {
  private static final int START_SECONDS = 60;
  private static final int STOP_SECONDS = 10;

  private final Process process;
  private final String url;
  private final String kubeconfig;
  private final String token;
  private final String ca;
  private final HttpClient client;

  private FakeCluster(Process process, String facts) throws IOException {
    this.process = process;
    url = checkLoopback(field(facts, "url"));
    kubeconfig = field(facts, "kubeconfig");
    token = Files.readString(Path.of(field(facts, "tokenFile")));
    ca = field(facts, "caFile");
    client = HttpClient.newBuilder().sslContext(trusting(Path.of(ca))).build();
  }

  /**
   * Runs the server on a free port and returns when it is ready. The flags are those of {@code fakeapiserver serve}, such as --nodes=1.
   * The variable FAKEAPISERVER names another command than the fakeapiserver on the PATH.
   */
  public static FakeCluster start(String... flags) throws IOException {
    return start(System.getenv().getOrDefault("FAKEAPISERVER", "fakeapiserver"), List.of(flags));
  }

  static FakeCluster start(String command, List<String> flags) throws IOException {
    leadTo(new File(System.getProperty("java.io.tmpdir"), "no-cluster-outside-of-FakeCluster").getPath());
    List<String> words = new ArrayList<>(List.of(command, "serve", "--output=json", "--stop-with-stdin"));
    words.addAll(flags);
    Process process;
    try {
      // its standard input is a pipe, which the system closes when this process ends
      process = new ProcessBuilder(words).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    } catch (IOException missing) {
      throw new IOException("there is no command " + command + ": pip install fakeapiserver, or name it in FAKEAPISERVER");
    }
    try {
      FakeCluster cluster = new FakeCluster(process, firstLine(process));
      leadTo(cluster.kubeconfig);
      return cluster;
    } catch (IOException | RuntimeException error) {
      process.destroyForcibly();
      throw error;
    }
  }

  /** The path of a kubeconfig. */
  public String kubeconfig() {
    return kubeconfig;
  }

  public String url() {
    return url;
  }

  public String token() {
    return token;
  }

  /** The path of the authority's certificate, in PEM. */
  public String ca() {
    return ca;
  }

  /** Moves the server's clock, such as by "1h": what is due meanwhile happens, each thing at its time. */
  public void advance(String duration) throws IOException {
    control("PUT", "clock", "{\"advance\": \"" + duration + "\"}");
  }

  /** Waits until the server's controllers are at rest. */
  public void settle() throws IOException {
    control("POST", "settle", "");
  }

  /** Lets requests fail: {"verb": "update", "resource": "configmaps", "status": 409, "times": 1}; docs/faults.md has all fields. */
  public void fault(String json) throws IOException {
    control("POST", "faults", json);
  }

  /** Stops the server. */
  @Override
  public void close() throws IOException {
    process.getOutputStream().close();
    try {
      if (!process.waitFor(STOP_SECONDS, TimeUnit.SECONDS)) {
        process.destroyForcibly().waitFor();
      }
    } catch (InterruptedException interrupted) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }

  private void control(String method, String path, String json) throws IOException {
    HttpRequest request = HttpRequest.newBuilder(URI.create(url + "/fakeapiserver/" + path)).method(method, BodyPublishers.ofString(json))
        .header("Authorization", "Bearer " + token).header("Content-Type", "application/json").build();
    try {
      HttpResponse<String> response = client.send(request, BodyHandlers.ofString());
      if (response.statusCode() >= 300) {
        throw new IOException(method + " " + path + ": " + response.statusCode() + ": " + response.body());
      }
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new IOException(interrupted);
    }
  }

  private static String firstLine(Process process) throws IOException {
    BufferedReader output = process.inputReader();
    CompletableFuture<Process> timer = new CompletableFuture<Process>().completeOnTimeout(process, START_SECONDS, TimeUnit.SECONDS);
    timer.thenAccept(Process::destroyForcibly);
    String line = output.readLine();
    timer.cancel(false);
    if (line == null) {
      throw new IOException("fakeapiserver serve did not start; its message is on standard error");
    }
    return line;
  }

  private static String field(String json, String name) throws IOException {
    Matcher matcher = Pattern.compile("\"" + name + "\": \"((?:[^\"\\\\]|\\\\.)*)\"").matcher(json);
    if (!matcher.find()) {
      throw new IOException("fakeapiserver serve printed no " + name + ": pip install --upgrade fakeapiserver");
    }
    return matcher.group(1).replace("\\\\", "\\");
  }

  /** Refuses a server that isn't on this machine. */
  static String checkLoopback(String url) throws IOException {
    String host = URI.create(url).getHost();
    if (!host.matches("\\[?[0-9a-f.:]+\\]?") || !InetAddress.getByName(host).isLoopbackAddress()) {
      throw new IOException(url + " is not on this machine: FakeCluster uses servers on loopback addresses only");
    }
    return url;
  }

  /** For fabric8's client. That of Kubernetes itself takes `Config.fromConfig(cluster.kubeconfig())`. */
  private static void leadTo(String kubeconfig) {
    System.setProperty("kubeconfig", kubeconfig);
    System.setProperty("kubernetes.auth.tryServiceAccount", "false");
  }

  private static SSLContext trusting(Path ca) throws IOException {
    try (InputStream pem = Files.newInputStream(ca)) {
      KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
      store.load(null, null);
      store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(pem));
      TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
      trust.init(store);
      SSLContext context = SSLContext.getInstance("TLS");
      context.init(null, trust.getTrustManagers(), null);
      return context;
    } catch (GeneralSecurityException error) {
      throw new IOException(error);
    }
  }
}
