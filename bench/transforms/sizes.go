package main

import (
	"encoding/binary"
	"hash/crc32"
	"io"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/transforms"
)

// sizes returns the sizes (height, width) to which a photo of w x h pixels is resized to compare
// all of Pillow's filters with penstock's: one row, one column, larger and smaller, all distorted.
// images.py has the same list.
func sizes(w, h int) [][]int {
	return [][]int{{256, 256}, {1, w}, {h, 1}, {h * 137 / 100, w * 137 / 100}, {7, 5}, {333, 77}, {h, w / 3}, {h / 3, w},
		{h * 2, w / 2}}
}

var filters = []string{"box", "bilinear", "hamming", "bicubic", "lanczos"}

// resizeAll writes the CRC32 of each photo in each size by each filter.
func resizeAll(order string) way {
	d := imagefile.New(imagefile.Options{})
	return func(data []byte, out io.Writer) error {
		ours, _, err := decoded([][]byte{data}, d)
		if err != nil {
			return err
		}
		m := ours[0]
		for _, size := range sizes(m.W, m.H) {
			for _, f := range filters {
				sum, err := resizeOne(m, size, f, order)
				if err != nil {
					return err
				}
				if err := write(out, binary.LittleEndian.AppendUint32(nil, sum)); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

func resizeOne(m *transforms.Image, size []int, filter, order string) (uint32, error) {
	p, err := transforms.Compose(transforms.Resize{Size: size, Interpolation: filter, PassOrder: order})
	if err != nil {
		return 0, err
	}
	dst := make([]byte, 3*size[0]*size[1])
	err = p.Runner().Do(dst, m)
	return crc32.ChecksumIEEE(dst), err
}
