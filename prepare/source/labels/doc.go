// Package labels reads annotated images: objects on images (COCO, Pascal VOC, YOLO, LabelMe), and images with
// masks.
//
// Each format has a function that opens a file or folder, which lists the images as an imageSource and describes
// them by a setFormat, and a reader of the objects of one image. The type samples makes the source: it chooses
// fields, compares image and annotations, and draws masks, once for all formats. All boxes and points are converted
// to corner coordinates in pixels, where 0, 0 is the top left corner of the first pixel.
//
// The objects of an image are read when the sample is, by a worker: the annotations of a large set do not fit in
// memory. Every file is opened through one root, and texts and sizes are checked before they are used.
//
//   - COCO: a JSON file beside a folder of images. https://cocodataset.org/#format-data
//   - Pascal VOC: an XML file for each image, lists of images, and files with the class of each pixel.
//     http://host.robots.ox.ac.uk/pascal/VOC/voc2012/htmldoc/
//   - YOLO as Ultralytics describes it: a YAML file, folders of images, and a text beside them with the objects of each
//     image. https://docs.ultralytics.com/datasets/
//   - LabelMe: a JSON file for each image. https://github.com/wkentaro/labelme
//   - Folders of images and masks that are matched by their names: Cityscapes, ADE20K, and others like them.
//
// Formats differ in where they count from:
//
//	COCO        box: left, top, width, height in pixels; keypoints: numbers of pixels, so half a pixel is added
//	Pascal VOC  box: first and last pixel, counted from 1
//	YOLO        box: center, width and height in parts of the image; polygons and keypoints in parts, too
//	LabelMe     points in pixels, as corner coordinates
package labels
