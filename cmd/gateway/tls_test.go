package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tracegate/bench/fakeengine"
)

// issue makes a certificate for 127.0.0.1, signed by itself, and writes NAME.pem and NAME.key.
func issue(t *testing.T, dir, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for suffix, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(filepath.Join(dir, name+suffix), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// tlsClient trusts the server's certificate and shows the given ones.
func tlsClient(t *testing.T, dir string, own ...tls.Certificate) *http.Client {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "server.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		t.Fatal("no certificate in server.pem")
	}
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: own}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// serveTLS starts a gateway with the same TLS settings on both listeners.
func serveTLS(t *testing.T, dir, settings string) *process {
	t.Helper()
	_, yaml := engine(t, fakeengine.Options{StepBase: 1e6}, "")
	settings = strings.ReplaceAll(settings, "DIR", dir)
	return serve(t, yaml+fmt.Sprintf("tls: %s\nadmin: {tls: %s}\n", settings, settings))
}

const onlyServer = "{cert: DIR/server.pem, key: DIR/server.key}"

func TestBothListenersSpeakTLS(t *testing.T) {
	dir := t.TempDir()
	issue(t, dir, "server")
	p, c := serveTLS(t, dir, onlyServer), tlsClient(t, dir)

	resp := chat(t, c, "https://"+p.data, "over-tls-request")
	equal(t, "protocol", resp.Proto, "HTTP/1.1")
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, "the stream", string(body), "data: {", "data: [DONE]")
	await(t, "the timeline", func() bool { return status(t, c, "https://"+p.admin+"/api/v1/requests/over-tls-request") == 200 })

	// The terminal asks over TLS too, where the system's roots know the certificate.
	request := exec.Command("gateway", "request", "--admin", "https://"+p.admin, "over-tls-request")
	request.Env = append(os.Environ(), "SSL_CERT_FILE="+filepath.Join(dir, "server.pem"))
	out, err := request.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	contains(t, "the picture", string(out), "over-tls-request", "waiting first token")

	for name, addr := range map[string]string{"data": p.data, "admin": p.admin} {
		if resp, err := client(t).Get("http://" + addr + "/livez"); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == 200 {
				t.Errorf("the %s listener answers without TLS", name)
			}
		}
	}
}

func TestACertificateThatNobodyKnowsIsRefused(t *testing.T) {
	dir := t.TempDir()
	issue(t, dir, "server")
	p := serveTLS(t, dir, onlyServer)
	out, err := exec.Command("gateway", "request", "--admin", "https://"+p.admin, "some-request").CombinedOutput()
	if err == nil {
		t.Errorf("asked without knowing who answers: %s", out)
	}
	contains(t, "why", string(out), "gateway: cannot ask the gateway admin=https://"+p.admin, "certificate")
}

func TestClientCertificatesAreRequired(t *testing.T) {
	dir := t.TempDir()
	issue(t, dir, "server")
	known, stranger := issue(t, dir, "client"), issue(t, t.TempDir(), "client")
	p := serveTLS(t, dir, "{cert: DIR/server.pem, key: DIR/server.key, client_ca: DIR/client.pem}")
	for name, addr := range map[string]string{"data": p.data, "admin": p.admin} {
		url := "https://" + addr + "/livez"
		equal(t, name+" with a known certificate", status(t, tlsClient(t, dir, known), url), 200)
		for who, c := range map[string]*http.Client{"without a certificate": tlsClient(t, dir), "with a stranger's": tlsClient(t, dir, stranger)} {
			if resp, err := c.Get(url); err == nil {
				_ = resp.Body.Close()
				t.Errorf("%s %s: status %d", name, who, resp.StatusCode)
			}
		}
	}
}

// TestBrokenConnectionsAreDebugLines of the log, in its format.
func TestBrokenConnectionsAreDebugLines(t *testing.T) {
	dir := t.TempDir()
	issue(t, dir, "server")
	for _, level := range []string{"info", "debug"} {
		_, yaml := engine(t, fakeengine.Options{StepBase: 1e6}, "log: {format: text, level: "+level+"}\n")
		p := serve(t, yaml+"admin: {tls: "+strings.ReplaceAll(onlyServer, "DIR", dir)+"}\n")
		resp, err := client(t).Get("http://" + p.admin + "/livez")
		if err == nil {
			_ = resp.Body.Close()
		}
		if level == "debug" {
			await(t, "a line", func() bool { return strings.Contains(p.stderr.String(), `level=DEBUG msg="http: TLS handshake error`) })
		}
		p.signal(syscall.SIGINT)
		equal(t, "exit code", p.wait(), 0)
		if level == "info" && strings.Contains(p.stderr.String(), "TLS handshake") {
			t.Errorf("at level %s: %s", level, p.stderr.String())
		}
	}
}
