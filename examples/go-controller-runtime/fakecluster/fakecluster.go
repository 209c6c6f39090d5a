// Package fakecluster starts `fakeapiserver serve` for tests. Copy this folder; it needs Go's standard library alone.
//
// From Start on, KUBECONFIG leads the clients of this process to the fake cluster, and after Close to no cluster: never to ~/.kube/config.
package fakecluster

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	startTimeout = 60 * time.Second
	stopTimeout  = 10 * time.Second
)

// FakeCluster is a server that runs until Close, or until this process ends.
type FakeCluster struct {
	URL        string
	Kubeconfig string // the path of a file
	Token      string
	CA         []byte // PEM

	process *exec.Cmd
	stdin   io.Closer
	client  *http.Client
}

// Start runs the server on a free port and returns when it is ready. The flags are those of `fakeapiserver serve`, such as --nodes=1.
// The variable FAKEAPISERVER names another command than the fakeapiserver on the PATH.
func Start(flags ...string) (*FakeCluster, error) {
	leadNowhere()
	command := os.Getenv("FAKEAPISERVER")
	if command == "" {
		command = "fakeapiserver"
	}
	c := &FakeCluster{process: exec.Command(command, append([]string{"serve", "--output=json", "--stop-with-stdin"}, flags...)...)}
	c.process.Stderr = os.Stderr
	stdin, err := c.process.StdinPipe() // the system closes it when this process ends, also by a crash: then the server stops
	if err != nil {
		return nil, err
	}
	c.stdin = stdin
	stdout, err := c.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.process.Start(); errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no command %s: pip install fakeapiserver, or name it in FAKEAPISERVER", command)
	} else if err != nil {
		return nil, err
	}
	timer := time.AfterFunc(startTimeout, func() { _ = c.process.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	timer.Stop()
	if err == nil {
		err = c.read(line)
	} else {
		err = errors.New("fakeapiserver serve did not start; its message is on standard error")
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, os.Setenv("KUBECONFIG", c.Kubeconfig)
}

// read takes the line of JSON that the server prints when it is ready.
func (c *FakeCluster) read(line []byte) error {
	var facts struct{ URL, Kubeconfig, TokenFile, CAFile string }
	if err := json.Unmarshal(line, &facts); err != nil {
		return err
	}
	if err := checkLoopback(facts.URL); err != nil {
		return err
	}
	token, err := os.ReadFile(facts.TokenFile)
	if err != nil {
		return err
	}
	c.CA, err = os.ReadFile(facts.CAFile)
	if err != nil {
		return err
	}
	c.URL, c.Kubeconfig, c.Token = facts.URL, facts.Kubeconfig, string(token)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.CA)
	c.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	return nil
}

// Advance moves the server's clock, such as by "1h": what is due meanwhile happens, each thing at its time.
func (c *FakeCluster) Advance(duration string) error {
	return c.control(http.MethodPut, "clock", map[string]any{"advance": duration})
}

// Settle waits until the server's controllers are at rest.
func (c *FakeCluster) Settle() error {
	return c.control(http.MethodPost, "settle", nil)
}

// Fault lets requests fail, such as {"verb": "update", "resource": "configmaps", "status": 409, "times": 1}: docs/faults.md has all fields.
func (c *FakeCluster) Fault(fault map[string]any) error {
	return c.control(http.MethodPost, "faults", fault)
}

func (c *FakeCluster) control(method, path string, body any) error {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequest(method, c.URL+"/fakeapiserver/"+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %d: %s", method, path, response.StatusCode, answer)
	}
	return err
}

// Close stops the server. KUBECONFIG goes on naming a file that is gone.
func (c *FakeCluster) Close() error {
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
	_ = c.stdin.Close()
	timer := time.AfterFunc(stopTimeout, func() { _ = c.process.Process.Kill() })
	defer timer.Stop()
	return c.process.Wait()
}

// leadNowhere keeps clients from a real cluster: also if the server doesn't start.
func leadNowhere() {
	for _, name := range []string{"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"} {
		_ = os.Unsetenv(name)
	}
	_ = os.Setenv("KUBECONFIG", filepath.Join(os.TempDir(), "no-cluster-outside-of-FakeCluster"))
}

// checkLoopback refuses a server that isn't on this machine.
func checkLoopback(server string) error {
	parsed, err := url.Parse(server)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(parsed.Hostname()); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%s is not on this machine: FakeCluster uses servers on loopback addresses only", server)
	}
	return nil
}
