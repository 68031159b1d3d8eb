package main

import "bytes"

// watcher is a Writer that acts once what was written contains a text.
type watcher struct {
	after string
	act   func()
	seen  bytes.Buffer
	acted bool
}

func (w *watcher) Write(p []byte) (int, error) {
	w.seen.Write(p)
	if !w.acted && bytes.Contains(w.seen.Bytes(), []byte(w.after)) {
		w.acted = true
		w.act()
	}
	return len(p), nil
}
