package kubernetes

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The version that the tests are about, as in kube-apiserver.mod.
const version = "v1.36.3"

const (
	startLimit = 2 * time.Minute
	adminToken = "administrator"
)

// cluster is an etcd in this process and a kube-apiserver beside it.
type cluster struct {
	dir, program string
	port         int
	etcd         *embed.Etcd
	server       *exec.Cmd
	ended        chan error
}

// build must be set, because the first build of kube-apiserver takes ten minutes.
var build = flag.Bool("kube-apiserver", false, "build kube-apiserver and run the tests")

// running is the cluster of all tests, which stop and start its server.
var running *cluster

func TestMain(m *testing.M) {
	flag.Parse()
	if !*build {
		fmt.Println("skipped: these tests need -kube-apiserver")
		return
	}
	code, err := withCluster(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withCluster(run func() int) (int, error) {
	dir, err := os.MkdirTemp("", "kubernetes")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	running = &cluster{dir: dir, program: filepath.Join(dir, "kube-apiserver")}
	begin := time.Now()
	if err := running.build(); err != nil {
		return 0, err
	}
	built := time.Now()
	if err := errors.Join(running.prepare(), running.startEtcd()); err != nil {
		return 0, err
	}
	defer running.etcd.Close()
	if err := running.start(); err != nil {
		return 0, err
	}
	fmt.Printf("K | kube-apiserver %s | built in %.0f s, healthy after %.1f s\n", version, built.Sub(begin).Seconds(), time.Since(built).Seconds())
	code := run()
	return code, running.stop()
}

// build builds the server with its own versions of all modules, by its own module file.
func (c *cluster) build() error {
	command := exec.Command("go", "build", "-modfile=kube-apiserver.mod",
		"-ldflags", "-X k8s.io/component-base/version.gitVersion="+version,
		"-o", c.program, "k8s.io/kubernetes/cmd/kube-apiserver")
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("build kube-apiserver: %w\n%s", err, output)
	}
	return nil
}

// prepare writes the administrator's token and the key of service accounts' tokens, and finds a
// port.
func (c *cluster) prepare() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	if err := os.WriteFile(c.file("accounts.key"), pem.EncodeToMemory(block), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(c.file("tokens.csv"), []byte(adminToken+",admin,admin,\"system:masters\"\n"), 0o600); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	c.port = listener.Addr().(*net.TCPAddr).Port
	return listener.Close()
}

func (c *cluster) file(name string) string { return filepath.Join(c.dir, name) }

func (c *cluster) startEtcd() error {
	config := embed.NewConfig()
	config.Dir = c.file("etcd")
	anyPort := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{anyPort}, []url.URL{anyPort}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{anyPort}, []url.URL{anyPort}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.UnsafeNoFsync = true
	config.WatchProgressNotifyInterval = 5 * time.Second
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	c.etcd = etcd
	select {
	case <-etcd.Server.ReadyNotify():
		return nil
	case <-time.After(startLimit):
		return errors.New("start etcd: it does not serve")
	}
}

// start starts the API server and returns when it is healthy.
func (c *cluster) start() error {
	log, err := os.Create(c.file("log"))
	if err != nil {
		return err
	}
	defer log.Close()
	c.server = exec.Command(c.program,
		"--etcd-servers=http://"+c.etcd.Clients[0].Addr().String(),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--secure-port="+strconv.Itoa(c.port), "--cert-dir="+c.file("certificates"),
		"--authorization-mode=RBAC", "--token-auth-file="+c.file("tokens.csv"),
		"--service-account-issuer=https://kubernetes.test", "--service-account-key-file="+c.file("accounts.key"),
		"--service-account-signing-key-file="+c.file("accounts.key"), "--service-cluster-ip-range=10.0.0.0/24",
		"--disable-admission-plugins=ServiceAccount",
	)
	c.server.Stdout, c.server.Stderr = log, log
	if err := c.server.Start(); err != nil {
		return fmt.Errorf("start kube-apiserver: %w", err)
	}
	c.ended = make(chan error, 1)
	go func(server *exec.Cmd, ended chan<- error) { ended <- server.Wait() }(c.server, c.ended)
	err = c.waitHealthy()
	if err != nil {
		text, _ := os.ReadFile(c.file("log"))
		return fmt.Errorf("start kube-apiserver: %w\n%s", errors.Join(err, c.stop()), text[max(0, len(text)-4000):])
	}
	return nil
}

func (c *cluster) waitHealthy() error {
	last := errors.New("it was not asked")
	for begin := time.Now(); time.Since(begin) < startLimit; time.Sleep(50 * time.Millisecond) {
		select {
		case err := <-c.ended:
			c.ended <- err
			return fmt.Errorf("it has ended: %w", err)
		default:
		}
		client, err := rest.HTTPClientFor(c.admin())
		if last = err; err != nil { // the certificate is not written yet
			continue
		}
		response, err := client.Get(c.url() + "/readyz")
		if last = err; err != nil {
			continue
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return nil
		}
		last = errors.New(response.Status)
	}
	return last
}

// stop kills the API server, with its connections.
func (c *cluster) stop() error {
	if err := c.server.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-c.ended
	return nil
}

func (c *cluster) url() string { return "https://127.0.0.1:" + strconv.Itoa(c.port) }

func (c *cluster) ca() string { return c.file("certificates/apiserver.crt") }

func (c *cluster) admin() *rest.Config {
	return &rest.Config{Host: c.url(), BearerToken: adminToken, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAFile: c.ca()}}
}

func (c *cluster) client(t *testing.T) kubernetes.Interface {
	client, err := kubernetes.NewForConfig(c.admin())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// within ends with the test, or after a limit.
func within(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}
