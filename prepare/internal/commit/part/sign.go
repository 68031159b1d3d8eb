package part

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/penstock/penstock/internal/vfs"
)

// Sign is the status of a process that builds a part, in a file next to the parts, until the part is complete.
type Sign struct {
	Rank    int       `json:"rank"`
	Size    int       `json:"world_size"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Samples int64     `json:"samples"`         // that are done
	Of      int64     `json:"of"`              // of the part; -1: not known yet
	Here    int64     `json:"here"`            // of those that are done, by this process
	Seconds float64   `json:"seconds"`         // since it began
	Time    time.Time `json:"time"`            // of this sign, by the clock of the host
	Error   string    `json:"error,omitempty"` // that has ended it
}

// How often a process leaves a sign, in a folder and in a bucket, and when one without a new sign is taken for
// killed.
const (
	SignEvery       = 5 * time.Second
	BucketSignEvery = 30 * time.Second
	SignLasts       = 2 * time.Minute
)

const signPrefix = "progress-"

// SignName is the name of the file of a process of the machine id.
func SignName(w Rank, id string) string {
	return signPrefix + Name(w.Index, w.Size) + "." + id + ".json"
}

// IsSign reports whether a file of a folder of parts is a sign.
func IsSign(name string) bool {
	return strings.HasPrefix(name, signPrefix) && strings.HasSuffix(name, ".json")
}

// ReadSign reads a sign.
func ReadSign(path string) (*Sign, error) {
	data, err := vfs.ReadFile(path, nil)
	if err != nil {
		return nil, err
	}
	s := new(Sign)
	if err := json.Unmarshal(data, s); err != nil || s.Size < 1 || s.Size > MaxRanks || s.Rank < 0 || s.Rank >= s.Size {
		return nil, fmt.Errorf("%s: is not the file of a running rank: %v", path, err)
	}
	return s, nil
}

// WriteSign returns a function that writes a sign into a folder, or with nil removes it. Signs need not survive a
// power cut.
func WriteSign(folder, name string) func(text []byte) error {
	return func(text []byte) error {
		root, err := os.OpenRoot(folder)
		if err != nil {
			return err
		}
		defer root.Close()
		if text == nil {
			return root.Remove(name)
		}
		if err := root.WriteFile("."+name, text, 0o644); err != nil {
			return err
		}
		return root.Rename("."+name, name)
	}
}
