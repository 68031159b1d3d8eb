package measure

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A program that answers is kept, one that does not is an error, and without a Python there is none.
func TestStartPeers(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell to play the Python: ", err)
	}
	dir := t.TempDir()
	for name, script := range map[string]string{"good": `read line; echo "{\"text\": \"of $1\"}"`, "bad": `read line; echo '{"error": "no libraries"}'`, "gone": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	c, a, err := StartPeers(sh, dir, "good", "photos")
	if err != nil || a.Text != "of photos" {
		t.Fatalf("%+v, error %v", a, err)
	}
	c.Close()
	for _, name := range []string{"bad", "gone"} {
		if c, _, err := StartPeers(sh, dir, name); c != nil || err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if c, a, err := StartPeers("", dir, "good"); c != nil || a.Text != "" || err != nil {
		t.Errorf("%+v, error %v", a, err)
	}
}
