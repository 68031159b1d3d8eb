package source

import (
	"bytes"
	"path/filepath"

	"github.com/penstock/penstock/internal/vfs"
)

// COCOFiles returns the annotation files of a folder, as COCO itself and Roboflow lay them out. Those of instances stand for
// the others of the same images.
func COCOFiles(folder string) []string {
	for _, pattern := range []string{
		filepath.Join("annotations", "instances_*.json"), "_annotations.coco.json", filepath.Join("*", "_annotations.coco.json"),
		filepath.Join("annotations", "person_keypoints_*.json"), filepath.Join("annotations", "*.json"), "*.json",
	} {
		var files []string
		found, _ := vfs.Glob(filepath.Join(Escape(folder), pattern))
		for _, f := range found {
			if IsCOCO(f) {
				files = append(files, f)
			}
		}
		if files != nil {
			return files
		}
	}
	return nil
}

// cocoHead is how much of a file shows that it is of COCO: a list of licenses may come first.
const cocoHead = 16 << 10

// IsCOCO reports whether a file begins as annotations of COCO do.
func IsCOCO(path string) bool {
	head := make([]byte, cocoHead)
	head = bytes.TrimSpace(head[:readHead(path, head)])
	if !bytes.HasPrefix(head, []byte("{")) {
		return false
	}
	for _, key := range []string{`"images"`, `"annotations"`} {
		if at := bytes.Index(head, []byte(key)); at >= 0 && bytes.HasPrefix(afterColon(head[at+len(key):]), []byte("[")) {
			return true
		}
	}
	return false
}

// afterColon returns what follows the key of a member.
func afterColon(text []byte) []byte {
	text, _ = bytes.CutPrefix(bytes.TrimSpace(text), []byte(":"))
	return bytes.TrimSpace(text)
}

// readHead fills b with the first bytes of a file and returns how many there are.
func readHead(path string, b []byte) int {
	f, err := vfs.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	n, _ := f.Read(b)
	return n
}
