package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
)

// mirror runs an informer of ConfigMaps. For each line of its input it prints what the cache holds: names and resourceVersions.
func mirror() error {
	base, err := config()
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(base)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().ConfigMaps().Informer()
	factory.Start(context.Background().Done())
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		held := map[string]string{}
		for _, object := range informer.GetStore().List() {
			configMap := object.(*corev1.ConfigMap)
			held[configMap.Name] = configMap.ResourceVersion
		}
		text, err := json.Marshal(held)
		if err != nil {
			return err
		}
		fmt.Println(string(text))
	}
	return lines.Err()
}
