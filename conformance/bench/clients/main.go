// What clients.py measures of Go's clients: one JSON line when the informer has synced, or all has been reconciled.
//
//	clients -config FILE -mode informer|controller -n OBJECTS -workers 1
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/go-logr/logr"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var (
	path    = flag.String("config", "", "path of a kubeconfig")
	mode    = flag.String("mode", "informer", "informer or controller")
	count   = flag.Int("n", 1, "objects to wait for")
	workers = flag.Int("workers", 1, "concurrent reconciles")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if *mode == "informer" {
		return informer()
	}
	return reconciles()
}

func informer() error {
	config, err := clientcmd.BuildConfigFromFlags("", *path)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("default"),
		informers.WithTransform(func(obj any) (any, error) {
			obj.(*corev1.ConfigMap).ManagedFields = nil
			return obj, nil
		}))
	configMaps := factory.Core().V1().ConfigMaps().Informer()
	start := time.Now()
	factory.Start(context.Background().Done())
	if !cache.WaitForCacheSync(context.Background().Done(), configMaps.HasSynced) {
		return fmt.Errorf("the informer did not sync")
	}
	report(map[string]float64{
		"objects": float64(len(configMaps.GetStore().ListKeys())),
		"seconds": time.Since(start).Seconds(),
		"rss_mib": rss(),
	})
	return nil
}

// Each config map's name ends in the time of its creation, in nanoseconds.
func reconciles() error {
	ctrl.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", *path)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = -1, 0
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	var lock sync.Mutex
	var first, last time.Time
	var waits []float64
	ctx, stop := context.WithCancel(context.Background())
	reconciler := reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		if !strings.HasPrefix(request.Name, "bench-") {
			return reconcile.Result{}, nil
		}
		var found corev1.ConfigMap
		if err := manager.GetClient().Get(ctx, types.NamespacedName(request.NamespacedName), &found); err != nil {
			return reconcile.Result{}, err
		}
		now := time.Now()
		lock.Lock()
		defer lock.Unlock()
		if first.IsZero() {
			first = now
		}
		var written int64
		fmt.Sscanf(found.Data["written"], "%d", &written)
		waits = append(waits, float64(now.UnixNano()-written)/1e6)
		last = now
		if len(waits) == *count {
			stop()
		}
		return reconcile.Result{}, nil
	})
	err = ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: *workers}).Complete(reconciler)
	if err != nil {
		return err
	}
	go func() {
		manager.GetCache().WaitForCacheSync(ctx)
		fmt.Println("ready")
	}()
	if err := manager.Start(ctx); err != nil {
		return err
	}
	sort.Float64s(waits)
	report(map[string]float64{
		"per_second": float64(len(waits)) / last.Sub(first).Seconds(),
		"p50_ms":     waits[len(waits)/2],
		"p99_ms":     waits[len(waits)*99/100],
		"rss_mib":    rss(),
	})
	return nil
}

func rss() float64 {
	status, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(status), "\n") {
		if strings.HasPrefix(line, "VmRSS:") {
			var kib float64
			fmt.Sscanf(strings.TrimPrefix(line, "VmRSS:"), "%f", &kib)
			return kib / 1024
		}
	}
	return 0
}

func report(figures map[string]float64) {
	line, _ := json.Marshal(figures)
	fmt.Println(string(line))
}
