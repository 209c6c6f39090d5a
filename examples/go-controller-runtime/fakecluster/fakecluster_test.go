package fakecluster

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestUseAndStop(t *testing.T) {
	cluster, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"settle":  cluster.Settle,
		"advance": func() error { return cluster.Advance("1h") },
		"fault":   func() error { return cluster.Fault(map[string]any{"verb": "get", "status": 429, "times": 1}) },
	} {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := cluster.Fault(map[string]any{"verb": "fly"}); err == nil || !strings.Contains(err.Error(), "fly") {
		t.Errorf("a fault that can't be read: %v", err)
	}
	if os.Getenv("KUBECONFIG") != cluster.Kubeconfig || cluster.Token == "" || len(cluster.CA) == 0 {
		t.Errorf("KUBECONFIG is %s, not %s", os.Getenv("KUBECONFIG"), cluster.Kubeconfig)
	}
	if err := cluster.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	waitUntilGone(t, cluster.URL)
	if _, err := os.Stat(os.Getenv("KUBECONFIG")); !os.IsNotExist(err) {
		t.Errorf("KUBECONFIG leads somewhere after Close: %v", err)
	}
}

// TestMain is also the process that TestCrash kills.
func TestMain(m *testing.M) {
	if os.Getenv("FAKECLUSTER_TEST_CRASH") == "" {
		os.Exit(m.Run())
	}
	cluster, err := Start("--controllers=none")
	if err != nil {
		panic(err)
	}
	fmt.Println(cluster.URL)
	select {}
}

func TestCrash(t *testing.T) {
	victim := exec.Command(os.Args[0])
	victim.Env = append(os.Environ(), "FAKECLUSTER_TEST_CRASH=yes")
	stdout, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	_ = victim.Process.Kill()
	_ = victim.Wait()
	if err != nil {
		t.Fatal(err)
	}
	waitUntilGone(t, strings.TrimSpace(line))
}

func TestCommandIsMissing(t *testing.T) {
	t.Setenv("KUBECONFIG", "/home/me/.kube/config")
	t.Setenv("FAKEAPISERVER", "no-such-command")
	_, err := Start()
	if err == nil || !strings.Contains(err.Error(), "pip install fakeapiserver") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(os.Getenv("KUBECONFIG"), "no-cluster") {
		t.Errorf("clients would find %s", os.Getenv("KUBECONFIG"))
	}
}

func TestOtherMachinesAreRefused(t *testing.T) {
	if err := checkLoopback("https://prod.example.com:6443"); err == nil {
		t.Error("a server on another machine is accepted")
	}
	if err := checkLoopback("https://127.0.0.1:6443"); err != nil {
		t.Error(err)
	}
}

func waitUntilGone(t *testing.T, server string) {
	t.Helper()
	parsed, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	for range 600 {
		connection, err := net.Dial("tcp", parsed.Host)
		if err != nil {
			return
		}
		_ = connection.Close()
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("%s is still there", server)
}
