package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPictures compares the pictures of docs/windows.md with what the loader returns now, and looks for them there.
func TestPictures(t *testing.T) {
	page, err := os.ReadFile("../../docs/windows.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, draw := range pictures {
		want, err := draw()
		if err != nil {
			t.Fatal(err)
		}
		if err := xml.Unmarshal([]byte(want), new(struct{})); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := os.ReadFile(filepath.Join("../../docs", name)); err != nil || string(got) != want {
			t.Errorf("docs/%s is not what the loader returns (%v); draw it by bench/run pages", name, err)
		}
		if !strings.Contains(string(page), "]("+name+")") {
			t.Errorf("docs/windows.md does not show %s", name)
		}
	}
}
