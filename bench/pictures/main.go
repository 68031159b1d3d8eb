// Command pictures draws the pictures of docs/windows.md: what the loader's own packages return for small arrays.
//
//	go run ./pictures ../docs
package main

import (
	"context"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pictures FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// pictures are the files, and how each is drawn.
var pictures = map[string]func() (string, error){
	"windows-forecast.svg": forecast,
	"windows-edges.svg":    edges,
	"windows-lanes.svg":    lanes,
}

func write(folder string) error {
	for name, draw := range pictures {
		text, err := draw()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

const style = `<style>text{font:13px system-ui,sans-serif;fill:#24292f}.h{font-weight:600}.m{text-anchor:middle}` +
	`.a{fill:#3f51b5}.b{fill:#e8710a}.c{fill:#d0d7de}.l{fill:none;stroke:#57606a}.g{stroke:#cf222e;stroke-dasharray:4 3}.w{fill:#fff}` +
	`@media(prefers-color-scheme:dark){text{fill:#e6edf3}.a{fill:#8c9eff}.b{fill:#ffa657}.c{fill:#30363d}` +
	`.l{stroke:#8b949e}.g{stroke:#ff7b72}.w{fill:#0d1117}}</style>`

// svg returns a picture, which a text describes.
func svg(width, height int, label, body string) string {
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" "+
		"aria-label=%q>\n%s\n%s</svg>\n", width, height, label, style, body)
}

// canvas is a picture that is drawn.
type canvas struct{ strings.Builder }

func (c *canvas) rect(class string, x, y, width, height int) {
	fmt.Fprintf(c, "<rect class=%q x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", class, x, y, width, height)
}

func (c *canvas) text(class string, x, y int, text string) {
	fmt.Fprintf(c, "<text class=%q x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, html.EscapeString(text))
}

// elements returns the elements that the windows of an array of n elements have of it, by field. Their value is their
// number.
func elements(w combine.Window, group []int64, fields ...string) (map[string][][]int32, error) {
	x := make([]int32, len(group))
	for i := range x {
		x[i] = int32(i)
	}
	src, err := combine.NewArrays(combine.Array{Name: "x", Values: tensor.From(x)},
		combine.Array{Name: "station", Values: tensor.From(group)})
	if err != nil {
		return nil, err
	}
	ws, err := combine.NewWindows(context.Background(), w, src)
	if err != nil {
		return nil, err
	}
	out := make(map[string][][]int32)
	for _, name := range fields {
		for i := range ws.Len() {
			v, err := ws.Slice(name, i, i+1)
			if err != nil {
				return nil, err
			}
			out[name] = append(out[name], tensor.As[int32](v))
		}
	}
	return out, nil
}

// forecast draws windows over two stations, with targets after a lead, none of which crosses from one to the other.
func forecast() (string, error) {
	const n, border, step, left = 60, 34, 10, 80
	group := make([]int64, n)
	for i := border; i < n; i++ {
		group[i] = 1
	}
	of, err := elements(combine.Window{Sizes: map[string]int{"0": 10}, Stride: map[string]int{"0": 4}, Group: "station",
		Fields: []combine.WindowField{{Name: "past", Of: "x"}, {Name: "future", Of: "x", Sizes: map[string]int{"0": 3},
			Lead: map[string]int{"0": 12}}}}, group, "past", "future")
	if err != nil {
		return "", err
	}
	var b canvas
	at := func(element int32) int { return left + int(element)*step }
	for _, station := range [][2]int{{0, border}, {border, n}} {
		b.WriteString(`<polyline class="l" points="`)
		for i := station[0]; i < station[1]; i++ {
			y := 40 - 14*math.Sin(float64(i)/2.5) - 8*math.Sin(float64(i)/7+float64(station[0]))
			fmt.Fprintf(&b, "%d,%.0f ", at(int32(i))+step/2, y)
		}
		b.WriteString("\"/>\n")
	}
	height := 94 + 18*len(of["past"])
	b.text("", 0, 44, "readings")
	fmt.Fprintf(&b, "<line class=\"g\" x1=\"%d\" x2=\"%[1]d\" y1=\"6\" y2=\"%d\"/>\n", at(border), height-22)
	for i, past := range of["past"] {
		y, future := 72+18*i, of["future"][i]
		b.text("", 0, y+11, fmt.Sprintf("record %d", i))
		b.rect("a", at(past[0]), y, len(past)*step, 12)
		b.rect("b", at(future[0]), y, len(future)*step, 12)
	}
	b.rect("a", left, height-14, 12, 12)
	b.text("", left+18, height-3, "past, 10")
	b.rect("b", left+110, height-14, 12, 12)
	b.text("", left+128, height-3, "future, 3, lead 12")
	b.text("", at(border)-8, height-3, "another station begins")
	return svg(left+n*step, height+4, "Windows over the readings of two stations; none crosses from one to the other",
		b.String()), nil
}

// edges draws the window at the end of an axis for each way to pad.
func edges() (string, error) {
	const n, size, origin, cell, left = 8, 5, 6, 34, 150
	var b canvas
	row := func(y int, label string, first int, values []int32) {
		b.text("", 0, y+21, label)
		for k, v := range values {
			class, of := "a", "m w"
			switch {
			case label == "the axis":
				class, of = "c", "m"
			case first+k >= n:
				class = "b"
			}
			b.rect(class, left+(first+k)*cell+1, y, cell-2, 30)
			b.text(of, left+(first+k)*cell+cell/2, y+20, fmt.Sprint(v))
		}
	}
	row(0, "the axis", 0, []int32{0, 1, 2, 3, 4, 5, 6, 7})
	for i, pad := range []combine.Pad{combine.PadConstant, combine.PadReflect, combine.PadWrap} {
		w := combine.Window{Sizes: map[string]int{"0": size}, Pad: map[string]combine.Pad{"0": pad},
			Origins: [][]int{{origin}}, Fields: []combine.WindowField{{Name: "x"}}}
		if pad == combine.PadConstant {
			w.Fill = -1
		}
		of, err := elements(w, make([]int64, n), "x")
		if err != nil {
			return "", err
		}
		label := fmt.Sprintf("pad=%q", pad)
		if pad == combine.PadConstant {
			label += ", fill=-1"
		}
		row(44+36*i, label, origin, of["x"][0])
	}
	w := combine.Window{Sizes: map[string]int{"0": size}, Fields: []combine.WindowField{{Name: "x"}}}
	last, err := elements(w, make([]int64, n), "x")
	if err != nil {
		return "", err
	}
	end := last["x"][len(last["x"])-1]
	row(44+36*3, "no pad: the last one", int(end[0]), end)
	return svg(left+(origin+size)*cell, 44+36*4, "The elements of a window at the end of an axis of 8, by pad",
		b.String()), nil
}

// lanes draws which chunk each position of an epoch reads, for Shuffle and for ChunkShuffle.
func lanes() (string, error) {
	const chunks, records, batch, left = 16, 20, 8, 10
	c := sampler.Chunks{Axes: []sampler.ChunkAxis{{Name: "time"}}, Fields: []sampler.ChunkField{{Name: "x", Bytes: 1 << 20,
		Counts: []int{chunks}, Needs: make([][]sampler.ChunkRange, 1)}}}
	for k := range chunks {
		c.Axes[0].Cuts = append(c.Axes[0].Cuts, k*records)
		c.Fields[0].Needs[0] = append(c.Fields[0].Needs[0], sampler.ChunkRange{First: k, Last: k})
	}
	c.Axes[0].Cuts = append(c.Axes[0].Cuts, chunks*records)
	order, err := sampler.NewChunkShuffle(c, sampler.ChunkOptions{Memory: 8 << 20, Batch: batch, Lanes: 4})
	if err != nil {
		return "", err
	}
	var b canvas
	const width = chunks * records
	for i, panel := range []struct {
		title string
		by    sampler.Sampler
	}{{"Shuffle", sampler.Shuffle{}}, {"ChunkShuffle, 4 lanes", order}} {
		x := left + i*(width+60)
		b.text("h", x, 14, panel.title)
		all := make([]int, width)
		panel.by.Epoch(width, 1, 0).Fill(0, all)
		for k := range chunks {
			b.rect("c", x, 24+k*10, width, 7)
		}
		b.WriteString("<path class=\"a\" d=\"")
		for at, record := range all {
			fmt.Fprintf(&b, "M%d %dh1v7h-1z", x+at, 24+record/records*10)
		}
		b.WriteString("\"/>\n")
		b.text("", x, 24+chunks*10+16, "positions of an epoch, one row for each chunk")
	}
	return svg(left+2*width+60+10, 24+chunks*10+24,
		"Which chunk each position of an epoch reads: any at any time by Shuffle, four at a time by ChunkShuffle",
		b.String()), nil
}
