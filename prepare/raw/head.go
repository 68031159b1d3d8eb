package raw

import (
	"encoding/json"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/transforms"
)

// head decodes the image files of records.
type head struct {
	field    int                  // position among all fields of the source
	given    *transforms.Pipeline // the argument of Decode
	pipeline *transforms.Pipeline // the same with channels first, as preprocess stores images
	recipe   json.RawMessage
	stored   store.Field
}

// decoding is the state of one goroutine that decodes images as a head
// describes: a decoder and its memory, reused from image to image.
type decoding struct {
	decoder *imagefile.Decoder
	run     *transforms.Runner
	pixels  []byte
}

func newDecoding(h *head) *decoding {
	return &decoding{imagefile.New(imagefile.Options{}), h.pipeline.Runner(), make([]byte, h.stored.RecordBytes())}
}

// do returns the pixels of a file, valid until the next call.
func (d *decoding) do(file []byte) ([]byte, error) {
	m, err := d.decoder.Open(file)
	if err != nil {
		return nil, err
	}
	return d.pixels, d.run.Do(d.pixels, m)
}
