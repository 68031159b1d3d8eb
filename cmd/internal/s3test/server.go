package s3test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Credentials of the server. Tests search logs and errors for them, where they must never appear.
const (
	AccessKey = "PENSTOCKTESTACCESSKEY"
	SecretKey = "penstock-test-secret-8f3a1c"
)

// Bucket is the name of the server's only bucket.
const Bucket = "lab"

// Server is a running versitygw: an S3 server that keeps objects as plain files.
type Server struct {
	Root    string // the folder of the bucket: objects are files in it
	Address string
	process *exec.Cmd
	ended   chan struct{} // closed when the process has
}

// find returns the path of the program: $VERSITYGW, or versitygw on the PATH or in GOPATH/bin.
func find() (string, error) {
	if p := os.Getenv("VERSITYGW"); p != "" {
		return p, nil
	}
	if p, err := exec.LookPath("versitygw"); err == nil {
		return p, nil
	}
	out, err := exec.Command("go", "env", "GOPATH").Output()
	p := filepath.Join(strings.TrimSpace(string(out)), "bin", "versitygw")
	if err == nil {
		_, err = os.Stat(p)
	}
	return p, err
}

// Start runs a server until the test ends, with flags besides its own, and sets the environment
// that the AWS SDK reads, so that no configuration of the user takes part. Without the program, the
// test is skipped.
func Start(t testing.TB, flags ...string) *Server {
	t.Helper()
	program, err := find()
	if err != nil {
		t.Skip("no versitygw: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0")
	}
	s := &Server{Root: filepath.Join(t.TempDir(), Bucket)}
	if err := os.Mkdir(s.Root, 0o755); err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": AccessKey, "AWS_SECRET_ACCESS_KEY": SecretKey, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		if err := os.Setenv(key, value); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(s.Stop)
	for range 5 { // another process may take the address in between
		if s.listen(t, program, flags) {
			return s
		}
	}
	t.Fatal("versitygw does not listen")
	return nil
}

// listen starts the process and waits until it accepts connections. It returns false if the process
// ended instead, as when another process has taken the port.
func (s *Server) listen(t testing.TB, program string, flags []string) bool {
	t.Helper()
	s.Address, s.ended = freeAddress(t), make(chan struct{})
	flags = append([]string{"--port", s.Address, "--quiet"}, flags...)
	s.process = exec.Command(program, append(flags, "posix", filepath.Dir(s.Root))...)
	s.process.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.ended)
		_ = s.process.Wait()
	}()
	for {
		if c, err := net.Dial("tcp", s.Address); err == nil {
			c.Close()
			return true
		}
		select {
		case <-s.ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// freeAddress returns a port that nothing listens on. It may be taken before the server listens.
func freeAddress(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Stop kills the server, as a power cut would.
func (s *Server) Stop() {
	if s.process != nil && s.process.Process != nil {
		_ = s.process.Process.Kill()
		<-s.ended
	}
}

// URL returns the URL of a key at the server's or a proxy's address.
func (s *Server) URL(address, key string) string {
	return fmt.Sprintf("s3://%s/%s?region=us-east-1&use_path_style=true&endpoint=http://%s", Bucket, key, address)
}
