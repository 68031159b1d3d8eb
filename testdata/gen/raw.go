package main

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
)

const perClass = 75

// rawFiles draws every class. The random stream of an image depends on its class and
// number alone, so that more images leave the others as they are.
func rawFiles() ([]file, error) {
	var files []file
	for c, class := range classes {
		for i := range perClass {
			rng := rand.New(rand.NewPCG(uint64(c), uint64(i)))
			ext, data, err := encode(i, drawPicture(rng, class.shape))
			if err != nil {
				return nil, err
			}
			files = append(files, file{fmt.Sprintf("raw/%s/%03d.%s", class.name, i, ext), data})
		}
	}
	return files, nil
}

// encode picks a format by the image's number: mostly JPEG, every fifth PNG, and a few of
// everything else.
func encode(i int, m *image.RGBA) (ext string, data []byte, err error) {
	var b bytes.Buffer
	switch {
	case i == 21:
		ext, err = "gif", gif.Encode(&b, m, nil)
	case i == 33:
		ext, err = "bmp", bmp.Encode(&b, m)
	case i == 47:
		ext, err = "tiff", tiff.Encode(&b, m, &tiff.Options{Compression: tiff.Deflate})
	case i%25 == 13:
		ext, err = "jpg", jpeg.Encode(&b, gray(m), &jpeg.Options{Quality: 88})
	case i%5 == 2:
		ext, err = "png", (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, m)
	default:
		ext, err = "jpg", jpeg.Encode(&b, m, &jpeg.Options{Quality: 80 + i%4*5})
	}
	return ext, b.Bytes(), err
}

func gray(m *image.RGBA) *image.Gray {
	g := image.NewGray(m.Rect)
	draw.Draw(g, m.Rect, m, image.Point{}, draw.Src)
	return g
}
