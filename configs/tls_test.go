package configs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writePair makes a self-signed certificate and its key in dir.
func writePair(t *testing.T, dir, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for suffix, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: cert}, ".key": {Type: "EC PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(filepath.Join(dir, name+suffix), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTLSFiles(t *testing.T) {
	dir := t.TempDir()
	writePair(t, dir, "a")
	writePair(t, dir, "b")
	file := filepath.Join(dir, "gateway.yaml")
	load := func(tls string) (*Config, []Problem) {
		text := base + "        tls: {ca: b.pem}\ntls: " + tls + "\n"
		if err := os.WriteFile(file, []byte(strings.Replace(text, "http://h", "https://h", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		return Load(file)
	}
	cfg, problems := load("{cert: a.pem, key: a.key, client_ca: b.pem}")
	if cfg == nil {
		t.Fatalf("good files are refused: %v", problems)
	}
	// Relative names start at the configuration file, wherever the process runs.
	if cfg.TLS.Cert != filepath.Join(dir, "a.pem") || cfg.Models[0].Deployments[0].TLS.CA != filepath.Join(dir, "b.pem") {
		t.Errorf("resolved to %+v and %+v", cfg.TLS, cfg.Models[0].Deployments[0].TLS)
	}
	for tls, want := range map[string]string{
		"{cert: a.pem, key: b.key}":                   "private key does not match public key",
		"{cert: a.pem, key: a.key, client_ca: a.key}": "has no certificate",
		"{cert: c.pem, key: a.key}":                   "no such file",
	} {
		if cfg, problems := load(tls); cfg != nil || !strings.Contains(fmt.Sprint(problems), want) {
			t.Errorf("%s gives %v, want %s", tls, problems, want)
		}
	}
}
