package labels

import (
	"bytes"
	"image"
	"image/png"

	"github.com/penstock/penstock/internal/imagefile"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// cityscapes are the classes for training on Cityscapes, by trainId (cityscapesScripts, helpers/labels.py).
var cityscapes = []string{"road", "sidewalk", "building", "wall", "fence", "pole", "traffic light", "traffic sign",
	"vegetation", "terrain", "sky",
	"person", "rider", "car", "truck", "bus", "train", "motorcycle", "bicycle"}

// labelIDs has the id of each of these classes in files *_labelIds.png.
var labelIDs = []byte{7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33}

// ignoredClass is the trainId of all other classes.
const ignoredClass = 255

// toTrainID maps the ids of files *_labelIds.png to trainIds.
var toTrainID = func() (table [256]byte) {
	for i := range table {
		table[i] = ignoredClass
	}
	for train, id := range labelIDs {
		table[id] = byte(train)
	}
	return table
}()

// trainIDs converts a mask file with label ids to a PNG with trainIds.
func trainIDs(file []byte) ([]byte, error) {
	m, err := new(imagefile.Decoder).Numbers(file)
	if err != nil {
		return nil, err
	}
	if m.DType != tensor.Uint8 {
		return nil, source.ValueError("has numbers of %v, and labelIds have 8 bits", m.DType)
	}
	for i, v := range m.Pix {
		m.Pix[i] = toTrainID[v]
	}
	var b bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(
		&b, &image.Gray{Pix: m.Pix, Stride: m.W, Rect: image.Rect(0, 0, m.W, m.H)})
	return b.Bytes(), err
}
