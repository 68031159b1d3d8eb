package preview

import (
	"fmt"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
)

// fonts has the type faces of a contact sheet: the Go fonts, which are part of the program, so that
// a sheet looks the same on every machine. A face serves one goroutine.
type fonts struct {
	title, text, label, number font.Face
}

// newFonts opens the faces.
func newFonts() (f fonts, err error) {
	for _, want := range []struct {
		face *font.Face
		ttf  []byte
		size float64
	}{
		{&f.title, gobold.TTF, 24}, {&f.text, goregular.TTF, 14}, {&f.label, goregular.TTF, 14},
		{&f.number, goregular.TTF, 11},
	} {
		parsed, err := opentype.Parse(want.ttf)
		if err != nil {
			return f, fmt.Errorf("font: %w", err)
		}
		*want.face, err = opentype.NewFace(parsed, &opentype.FaceOptions{Size: want.size, DPI: 72, Hinting: font.HintingFull})
		if err != nil {
			return f, fmt.Errorf("font: %w", err)
		}
	}
	return f, nil
}

// fit shortens text to at most width pixels, with an ellipsis at its end.
func fit(face font.Face, text string, width int) string {
	if font.MeasureString(face, text).Ceil() <= width {
		return text
	}
	runes := []rune(text)
	for n := len(runes) - 1; n > 0; n-- {
		short := string(runes[:n]) + "…"
		if font.MeasureString(face, short).Ceil() <= width {
			return short
		}
	}
	return "…"
}
