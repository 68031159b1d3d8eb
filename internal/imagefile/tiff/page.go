package tiff

import (
	"slices"

	"github.com/penstock/penstock/tensor"
)

// Values of PhotometricInterpretation (TIFF 6.0 section 8).
const (
	whiteIsZero = 0
	blackIsZero = 1
	rgb         = 2
	palette     = 3
	separated   = 5
	ycbcr       = 6
)

// Values of Compression. 1 to 6 and 32773 are of TIFF 6.0, the others of later notes.
const (
	none     = 1
	ccittRLE = 2
	group3   = 3
	group4   = 4
	lzw      = 5
	oldJPEG  = 6
	jpeg     = 7
	deflate  = 8
	packBits = 32773
	zlib     = 32946
	zstd     = 50000
)

// compressionNames has the names of compressions that are not read, for messages.
var compressionNames = map[int]string{
	ccittRLE: "CCITT RLE", oldJPEG: "JPEG of TIFF 5", 32766: "NeXT", 32809: "ThunderScan", 33003: "JPEG 2000",
	33005: "JPEG 2000", 33007: "JPEG 2000",
	34661: "JBIG", 34676: "SGI Log", 34677: "SGI Log", 34712: "JPEG 2000", 34887: "LERC", 34892: "lossy JPEG of DNG",
	34925: "LZMA", 34933: "PNG",
	50001: "WebP", 50002: "JPEG XL", 52546: "JPEG XL", zstd: "zstd", jpeg: "JPEG",
}

// Codecs are decoders that this package does not have.
type Codecs struct {
	// JPEG decodes a JPEG of at most w by h pixels to interleaved samples with that many channels:
	// 1, or 3 for RGB.
	JPEG func(data []byte, w, h, channels int) (pix []byte, gotW, gotH int, err error)
	// Zstd fills dst from frames of zstd.
	Zstd func(dst, src []byte) error
}

// grid is the division of a page into strips or tiles.
type grid struct {
	chunkW int // of a strip or tile
	chunkH int
	across int // number of chunks side by side
	down   int
}

// Page is one image of a file, as its directory describes it.
type Page struct {
	Width, Height int
	Channels      int          // samples of a pixel
	Bits          int          // of a sample as stored
	DType         tensor.DType // of a sample as Samples returns it
	Orientation   int          // 1 to 8
	// Model is gray, graya, rgb, rgba, palette, ycbcr, cmyk, or channels, whose meaning the file
	// does not say.
	Model       string
	Transparent bool // the first extra sample is alpha

	file        file
	dir         directory
	photometric int
	compression int
	premult     bool // alpha is premultiplied
	predictor   int
	planar      bool
	reversed    bool // the first pixel is in the lowest bits of a byte
	tiled       bool
	grid        grid
	sub         [2]int // pixels across and down that one sample of chroma covers
}

// Read reads the directory of the first page.
func Read(data []byte) (*Page, error) {
	f, at, err := open(data)
	if err != nil {
		return nil, err
	}
	d, _, err := f.directory(at)
	if err != nil {
		return nil, err
	}
	return f.page(d)
}

// maxPages bounds the number of directories that are read.
const maxPages = 4096

// Pages reads the directories of all pages of full size. Smaller copies and masks, of which the
// first page is never one, are left out. seen ends a chain of directories that leads back.
func Pages(data []byte) (pages []*Page, err error) {
	f, at, err := open(data)
	var seen []uint64
	for at != 0 && err == nil && len(seen) < maxPages && !slices.Contains(seen, at) {
		var d directory
		seen = append(seen, at)
		if d, at, err = f.directory(at); err != nil {
			return nil, err
		}
		const reduced, mask = 1, 4
		if len(pages) > 0 && f.one(d, tagSubfileType, 0)&(reduced|mask) != 0 {
			continue
		}
		p, err := f.page(d)
		if err != nil {
			return nil, err
		}
		pages = append(pages, p)
	}
	return pages, err
}

// page interprets a directory.
func (f *file) page(d directory) (*Page, error) {
	p := &Page{
		Width: f.one(d, tagWidth, 0), Height: f.one(d, tagHeight, 0), Channels: f.one(d, tagSamples, 1), Bits: f.one(d,
			tagBits, 1),
		Orientation: f.one(d, tagOrientation, 1),
		file:        *f, dir: d,
		photometric: f.one(d, tagPhotometric, blackIsZero), compression: f.one(d, tagCompression, none), predictor: f.one(d,
			tagPredictor, 1),
		planar: f.one(d, tagPlanar, 1) == 2, reversed: f.one(d, tagFillOrder, 1) == 2, sub: [2]int{1, 1},
	}
	if p.Orientation < 1 || p.Orientation > 8 {
		p.Orientation = 1
	}
	const most = 1<<31 - 1
	if p.Width < 1 || p.Height < 1 || p.Width > most || p.Height > most {
		return nil, malformed("the header says %dx%d pixels", p.Width, p.Height)
	}
	const channels = 1 << 12
	if p.Channels < 1 || p.Channels > channels {
		return nil, malformed("the header says %d samples a pixel", p.Channels)
	}
	for _, check := range []func() error{p.setType, p.setModel, p.setChunks} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// setType finds the type of a sample. Unsigned integers may have fewer bits than their type, up to
// 16.
func (p *Page) setType() error {
	if e, ok := p.dir[tagBits]; ok {
		for i := range min(e.count, p.Channels) {
			if p.file.integer(e, i) != p.Bits {
				return unsupported(rewrite, "its channels have several numbers of bits")
			}
		}
	}
	format := p.file.one(p.dir, tagSampleFormat, 1)
	if format == 4 { // undefined
		format = 1
	}
	size := 8
	for size < p.Bits {
		size *= 2
	}
	p.DType = map[[2]int]tensor.DType{
		{1, 8}: tensor.Uint8, {1, 16}: tensor.Uint16, {1, 32}: tensor.Uint32, {1, 64}: tensor.Uint64,
		{2, 8}: tensor.Int8, {2, 16}: tensor.Int16, {2, 32}: tensor.Int32, {2, 64}: tensor.Int64,
		{3, 16}: tensor.Float16, {3, 32}: tensor.Float32, {3, 64}: tensor.Float64,
	}[[2]int{format, size}]
	whole := p.Bits == size
	if p.Bits < 1 || p.DType == tensor.Invalid || !whole && (format != 1 || p.Bits > 16) {
		return unsupported(rewrite, "its samples have %d bits of format %d", p.Bits, format)
	}
	return nil
}

// setModel finds what the channels are.
func (p *Page) setModel() error {
	extra := -1
	if e, ok := p.dir[tagExtraSamples]; ok {
		extra = p.file.integer(e, 0)
	}
	const associated, straight = 1, 2
	alpha := extra == associated || extra == straight
	defer func() {
		p.Transparent, p.premult = alpha && (p.Model == "graya" || p.Model == "rgba"), extra == associated
	}()
	switch p.photometric {
	case whiteIsZero, blackIsZero:
		p.Model = map[bool]string{true: "gray", false: "channels"}[p.Channels == 1]
		if p.Channels == 2 && alpha {
			p.Model = "graya"
		}
	case rgb:
		switch {
		case p.Channels == 3:
			p.Model = "rgb"
		case p.Channels == 4:
			p.Model = "rgba"
		case p.Channels > 4:
			p.Model = "channels"
		}
	case palette:
		if p.Channels == 1 && p.Bits <= 8 && p.DType == tensor.Uint8 {
			p.Model = "palette"
		}
	case separated:
		p.Model = map[bool]string{true: "cmyk", false: "channels"}[p.Channels == 4]
		if p.Channels == 4 && p.DType != tensor.Uint8 {
			return unsupported(toRGB, "it is CMYK of %d bits", p.Bits)
		}
	case ycbcr:
		if p.Channels == 3 && p.Bits == 8 {
			p.Model = "ycbcr"
			return p.setSampling()
		}
	case 8, 9, 10:
		return unsupported(toRGB, "its colors are CIE L*a*b*")
	}
	if p.Model == "" {
		return unsupported(rewrite, "its photometric interpretation is %d, with %d samples of %d bits a pixel", p.photometric,
			p.Channels, p.Bits)
	}
	return nil
}

// setSampling finds how many pixels a sample of chroma covers. In a JPEG, the stream itself says
// so.
func (p *Page) setSampling() error {
	if p.compression == jpeg {
		return nil
	}
	p.sub = [2]int{2, 2}
	if e, ok := p.dir[tagYCbCrSampling]; ok && e.count >= 2 {
		p.sub = [2]int{p.file.integer(e, 0), p.file.integer(e, 1)}
	}
	for _, s := range p.sub {
		if s != 1 && s != 2 && s != 4 {
			return malformed("a sample of chroma covers %dx%d pixels", p.sub[0], p.sub[1])
		}
	}
	if p.planar {
		return unsupported(toRGB, "it is YCbCr in planes")
	}
	return nil
}

// setChunks finds the division into strips or tiles.
func (p *Page) setChunks() error {
	if _, ok := p.dir[tagTileWidth]; ok {
		p.tiled = true
		p.grid.chunkW, p.grid.chunkH = p.file.one(p.dir, tagTileWidth, 0), p.file.one(p.dir, tagTileHeight, 0)
	} else {
		p.grid.chunkW, p.grid.chunkH = p.Width, min(p.file.one(p.dir, tagRowsPerStrip, p.Height), p.Height)
	}
	const most = 1<<31 - 1
	if p.grid.chunkW < 1 || p.grid.chunkH < 1 || p.grid.chunkW > most || p.grid.chunkH > most {
		return malformed("its strips or tiles have %dx%d pixels", p.grid.chunkW, p.grid.chunkH)
	}
	p.grid.across, p.grid.down = (p.Width+p.grid.chunkW-1)/p.grid.chunkW, (p.Height+p.grid.chunkH-1)/p.grid.chunkH
	return p.checkCompression()
}

// checkCompression refuses compressions and predictors that cannot be decoded.
func (p *Page) checkCompression() error {
	switch c := p.compression; {
	case c == group3 && p.file.one(p.dir, tagT4Options, 0)&1 != 0:
		return unsupported(rewrite, "its compression is CCITT group 3 in two dimensions")
	case (c == group3 || c == group4) && (p.Bits != 1 || p.Channels != 1):
		return malformed("its compression is for bits, and its samples have %d", p.Bits)
	case c == jpeg && (p.Bits != 8 || p.DType != tensor.Uint8 || p.Model == "cmyk" || p.Model == "palette"):
		return unsupported(rewrite, "its compression is JPEG, of %d bits (%s)", p.Bits, p.Model)
	case c == none, c == lzw, c == deflate, c == zlib, c == packBits, c == group3, c == group4, c == jpeg, c == zstd:
	default:
		name := compressionNames[c]
		if name == "" {
			name = "number"
		}
		return unsupported(rewrite, "its compression is %s (%d)", name, c)
	}
	switch p.predictor {
	case 1:
	case 2:
		if p.Bits != p.DType.Size()*8 {
			return unsupported(rewrite, "its samples of %d bits are stored as differences", p.Bits)
		}
	case 3:
		if !p.DType.IsFloat() {
			return malformed("the predictor for floats stands by samples that are %v", p.DType)
		}
	default:
		return unsupported(rewrite, "its predictor is %d", p.predictor)
	}
	return nil
}

// Bytes returns the number of bytes of Samples. It is a float, as it may exceed any int.
func (p *Page) Bytes() float64 {
	return float64(p.Width) * float64(p.Height) * float64(p.Channels) * float64(p.DType.Size())
}

// samplesOf returns the number of samples of a pixel in a chunk.
func (p *Page) samplesOf() int {
	if p.planar {
		return 1
	}
	return p.Channels
}
