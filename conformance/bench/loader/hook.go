package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// hook serves an admission webhook that allows everything, until it is killed. /stats tells how often it was asked, and how many
// microseconds it took itself.
func hook() map[string]any {
	var calls, spent int64
	http.HandleFunc("/stats", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"calls":%d,"us":%d}`, atomic.LoadInt64(&calls), atomic.LoadInt64(&spent))
	})
	http.HandleFunc("/allow", func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		var review struct {
			APIVersion string `json:"apiVersion"`
			Request    struct {
				UID string `json:"uid"`
			} `json:"request"`
		}
		data, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(data, &review); err != nil {
			fail(err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"AdmissionReview","apiVersion":%q,"response":{"uid":%q,"allowed":true}}`, review.APIVersion, review.Request.UID)
		atomic.AddInt64(&spent, time.Since(started).Microseconds())
		atomic.AddInt64(&calls, 1)
	})
	fail(http.ListenAndServeTLS(*address, *certificate, *key, nil))
	return nil
}
