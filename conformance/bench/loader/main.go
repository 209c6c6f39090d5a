// A load generator that costs little: standard library only, one JSON line of figures per run.
//
//	loader -url https://127.0.0.1:6443 -token T -mode create -n 500 -clients 1
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var (
	url      = flag.String("url", "", "the servers, separated by commas: clients are spread over them")
	token    = flag.String("token", "", "a bearer token")
	mode     = flag.String("mode", "", "create, get, update, patch, apply, list, page, pages, selector, watch, fill, deletecollection, probe, hook")
	count    = flag.Int("n", 1, "requests in all (events for watch)")
	clients  = flag.Int("clients", 1, "connections at a time (watchers for watch)")
	resource = flag.String("resource", "configmaps", "the objects in the namespace default; others than configmaps must exist")
	prefix   = flag.String("prefix", "a", "start of the objects' names")
	objects  = flag.Int("objects", 1, "how many objects with this prefix exist (get, patch)")
	size     = flag.Int("size", 1600, "bytes of the payload of objects (create, fill, update); 0: the smallest objects, without annotations")

	address     = flag.String("address", "", "where to serve (hook)")
	certificate = flag.String("certificate", "", "a PEM file (hook)")
	key         = flag.String("key", "", "a PEM file (hook)")
)

func collection() string { return "/api/v1/namespaces/default/" + *resource }

var clientsMade int64 = -1

// A client with a connection of its own, so that clients don't share one HTTP/2 connection, to the next of the servers.
func newClient() *client {
	urls := strings.Split(*url, ",")
	number := int(atomic.AddInt64(&clientsMade, 1))
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2:   true,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 1,
	}
	return &client{urls[number%len(urls)], &http.Client{Transport: transport}}
}

type client struct {
	url  string
	http *http.Client
}

func call(client *client, method, path, contentType string, body []byte) ([]byte, error) {
	request, err := http.NewRequest(method, client.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+*token)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := client.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %d %.300s", method, path, response.StatusCode, answer)
	}
	return answer, err
}

func name(i int) string { return fmt.Sprintf("%s-%06d", *prefix, i) }

// By default about 2 KB, as small real objects are; without a payload about 400 bytes as they are stored.
func object(name string, i int) []byte {
	if *size == 0 {
		return []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{"app":"bench"}},"data":{"index":"%d"}}`,
			name, i))
	}
	return []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{"app":"bench","tenth":"tenth-%d"},`+
		`"annotations":{"example.com/note":%q}},"data":{"index":"%d","payload":%q}}`,
		name, i%10, strings.Repeat("n", 100), i, strings.Repeat("payload ", *size/8)))
}

func operation(i int) (method, path, contentType string, body []byte) {
	switch *mode {
	case "create", "fill":
		return "POST", collection(), "application/json", object(name(i), i)
	case "get":
		return "GET", collection() + "/" + name(i%*objects), "", nil
	case "update":
		return "PUT", collection() + "/" + name(i%*objects), "application/json", object(name(i%*objects), *objects+i)
	case "patch":
		return "PATCH", collection() + "/" + name(i%*objects), "application/merge-patch+json",
			[]byte(fmt.Sprintf(`{"data":{"index":"changed %d"}}`, i))
	case "apply":
		return "PATCH", collection() + "/" + name(i%*objects) + "?fieldManager=bench&force=true", "application/apply-patch+yaml",
			[]byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"applied":"%d"}}`, name(i%*objects), i))
	case "list":
		return "GET", collection(), "", nil
	case "page":
		return "GET", collection() + "?limit=500", "", nil
	case "selector":
		return "GET", collection() + "?labelSelector=tenth%3Dtenth-3", "", nil
	case "deletecollection":
		return "DELETE", collection() + "?labelSelector=app%3Dbench&gracePeriodSeconds=0", "", nil
	}
	fail(fmt.Errorf("unknown mode %q", *mode))
	return
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func run() map[string]any {
	durations := make([]float64, *count)
	var next int64 = -1
	var answered int64
	var group sync.WaitGroup
	started := time.Now()
	for c := 0; c < *clients; c++ {
		group.Add(1)
		go func() {
			defer group.Done()
			client := newClient()
			call(client, "GET", "/version", "", nil) // the handshake is not what is measured
			for {
				i := int(atomic.AddInt64(&next, 1))
				if i >= *count {
					return
				}
				begin := time.Now()
				if *mode == "pages" {
					atomic.StoreInt64(&answered, pages(client))
				} else {
					method, path, contentType, body := operation(i)
					answer, err := call(client, method, path, contentType, body)
					for err != nil && *mode == "deletecollection" && strings.Contains(err.Error(), ": 504 ") {
						answer, err = call(client, method, path, contentType, body) // a server's limit is a minute
					}
					if err != nil {
						fail(err)
					}
					atomic.StoreInt64(&answered, int64(len(answer)))
				}
				durations[i] = time.Since(begin).Seconds() * 1000
			}
		}()
	}
	group.Wait()
	total := time.Since(started).Seconds()
	sort.Float64s(durations)
	return map[string]any{
		"p50_ms": durations[*count/2], "p99_ms": durations[*count*99/100],
		"per_second": float64(*count) / total, "seconds": total, "bytes": answered,
	}
}

// Every watcher must see every event once and in order; anything else is an error. Delays are in milliseconds, from the write's beginning.
func watcher(revision string, ready *sync.WaitGroup, begun []time.Time, delays []float64, done func()) {
	defer done()
	client := newClient()
	request, _ := http.NewRequest("GET", client.url+collection()+"?watch=true&resourceVersion="+revision, nil)
	request.Header.Set("Authorization", "Bearer "+*token)
	response, err := client.http.Do(request)
	if err != nil {
		fail(err)
	}
	defer response.Body.Close()
	ready.Done()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(make([]byte, 0, 65536), 1<<24)
	for wanted := 0; wanted < *count; wanted++ {
		if !lines.Scan() {
			fail(fmt.Errorf("a watch ended after %d of %d events", wanted, *count))
		}
		if event := fmt.Sprintf(`"event":"%d"`, wanted); !bytes.Contains(lines.Bytes(), []byte(event)) {
			fail(fmt.Errorf("%s came as %.300s", event, lines.Bytes()))
		}
		delays[wanted] = time.Since(begun[wanted]).Seconds() * 1000
	}
}

func watch() map[string]any {
	client := newClient()
	body := []byte(fmt.Sprintf(`{"metadata":{"name":%q},"data":{"payload":%q}}`, *prefix, strings.Repeat("payload ", 100)))
	if _, err := call(client, "POST", collection(), "application/json", body); err != nil {
		fail(err)
	}
	answer, err := call(client, "GET", collection()+"?limit=1", "", nil)
	if err != nil {
		fail(err)
	}
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	json.Unmarshal(answer, &list)
	var ready, finished sync.WaitGroup
	begun, delays := make([]time.Time, *count), make([]float64, *count**clients)
	for w := 0; w < *clients; w++ {
		ready.Add(1)
		finished.Add(1)
		go watcher(list.Metadata.ResourceVersion, &ready, begun, delays[w**count:(w+1)**count], finished.Done)
	}
	ready.Wait()
	started := time.Now()
	for i := 0; i < *count; i++ {
		begun[i] = time.Now()
		patch := []byte(fmt.Sprintf(`{"data":{"event":"%d"}}`, i))
		if _, err := call(client, "PATCH", collection()+"/"+*prefix, "application/merge-patch+json", patch); err != nil {
			fail(err)
		}
	}
	finished.Wait()
	seconds := time.Since(started).Seconds()
	sort.Float64s(delays)
	return map[string]any{
		"seconds": seconds, "per_second": float64(len(delays)) / seconds,
		"p50_ms": delays[len(delays)/2], "p99_ms": delays[len(delays)*99/100],
	}
}

func main() {
	flag.Parse()
	modes := map[string]func() map[string]any{"watch": watch, "probe": probe, "hook": hook}
	result, ok := modes[*mode]
	if !ok {
		result = run
	}
	json.NewEncoder(os.Stdout).Encode(result())
}
