//go:build !libzstd || !cgo

package stream

// ZstdBackend names the library that decodes zstd: "Go" or "libzstd".
const ZstdBackend = "Go"

func unzstd(dst, src []byte) ([]byte, error) { return unzstdGo(dst, src) }
