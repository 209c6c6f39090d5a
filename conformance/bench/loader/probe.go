package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"sort"
	"time"
)

// pages lists everything in pages of 500, and returns the bytes of all.
func pages(client *client) (size int64) {
	next := ""
	for {
		answer, err := call(client, "GET", collection()+"?limit=500&continue="+next, "", nil)
		if err != nil {
			fail(err)
		}
		size += int64(len(answer))
		next = continuation(answer)
		if next == "" {
			return size
		}
	}
}

// continuation returns the token of the next page. The metadata comes before the items, which aren't parsed.
func continuation(list []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(list))
	for {
		token, err := decoder.Token()
		if err != nil || token == "items" {
			return ""
		}
		if token == "metadata" {
			var metadata struct {
				Continue string `json:"continue"`
			}
			if err := decoder.Decode(&metadata); err != nil {
				fail(err)
			}
			return metadata.Continue
		}
	}
}

// probe reads a small object every five milliseconds until its standard input ends.
func probe() map[string]any {
	ended := make(chan bool)
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	client := newClient()
	var durations []float64
	for {
		begin := time.Now()
		if _, err := call(client, "GET", "/api/v1/namespaces/kube-system", "", nil); err != nil {
			fail(err)
		}
		durations = append(durations, time.Since(begin).Seconds()*1000)
		select {
		case <-ended:
			sort.Float64s(durations)
			count := len(durations)
			return map[string]any{"p50_ms": durations[count/2], "p99_ms": durations[count*99/100], "max_ms": durations[count-1]}
		case <-time.After(5 * time.Millisecond):
		}
	}
}
