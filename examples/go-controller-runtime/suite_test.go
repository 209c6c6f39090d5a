package greeting

import (
	"context"
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/greeting/fakecluster"
)

var (
	ctx     = context.Background()
	cluster *fakecluster.FakeCluster // nil under envtest
	writer  client.Client
)

func TestGreeting(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Greeting")
}

// The same suite runs on both servers: with KUBEBUILDER_ASSETS on envtest's, which can be fakeapiserver's or real programs.
var _ = BeforeSuite(func() {
	log.SetLogger(GinkgoLogr)
	config := start()
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	Expect(err).NotTo(HaveOccurred())
	Expect(SetUp(manager)).To(Succeed())
	managed, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- manager.Start(managed) }()
	DeferCleanup(func() {
		stop()
		Expect(<-done).To(Succeed())
	})
	writer = manager.GetClient()
})

func start() *rest.Config {
	if os.Getenv("KUBEBUILDER_ASSETS") != "" {
		environment := &envtest.Environment{CRDDirectoryPaths: []string{"crds"}}
		config, err := environment.Start()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(environment.Stop)
		return config
	}
	started, err := fakecluster.Start("--crds=crds")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(started.Close)
	cluster = started
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	return config
}

func create(name, text string) {
	GinkgoHelper()
	greeting := New()
	greeting.SetNamespace("default")
	greeting.SetName(name)
	Expect(unstructured.SetNestedField(greeting.Object, text, "spec", "text")).To(Succeed())
	Expect(writer.Create(ctx, greeting)).To(Succeed())
}

func text(name string) func(Gomega) string {
	return func(g Gomega) string {
		var config corev1.ConfigMap
		g.Expect(writer.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, &config)).To(Succeed())
		return config.Data["text"]
	}
}

var _ = Describe("A greeting", func() {
	It("gets a ConfigMap", func() {
		create("hello", "Hello!")
		Eventually(text("hello"), "20s").Should(Equal("Hello!"))
	})

	It("is written although the API server is overloaded for a moment", func() {
		if cluster == nil {
			Skip("envtest injects no faults")
		}
		Expect(cluster.Fault(map[string]any{"verb": "create", "resource": "configmaps", "status": 500, "times": 2})).To(Succeed())
		create("again", "Hello again!")
		Eventually(text("again"), "20s").Should(Equal("Hello again!"))
	})
})
