import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.util.Config;
import java.util.Map;

/** Kubernetes' own client for Java. */
public class Official {
  public static void main(String[] arguments) throws Exception {
    ApiClient client = Config.fromConfig(System.getenv("KUBECONFIG"));
    CoreV1Api api = new CoreV1Api(client);
    V1ConfigMap map = new V1ConfigMap().metadata(new V1ObjectMeta().name("official-java")).data(Map.of("k", "1"));
    api.createNamespacedConfigMap("default", map).execute();
    V1ConfigMap found = api.readNamespacedConfigMap("official-java", "default").execute();
    if (!found.getData().equals(map.getData())) throw new IllegalStateException("found " + found.getData());
    System.out.println("official: ok");
    System.exit(0);
  }
}
