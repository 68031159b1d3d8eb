// Package labels reads annotated images: objects on images (COCO, Pascal VOC, YOLO, LabelMe), and images with masks.
//
// Each format has a function that opens a file or folder of it, a set that lists its images, and a reader of the objects
// of one image. Type samples makes records of them: fields, checks and masks are decided there, once for all formats.
// Every file is opened through one root, and its texts and sizes are checked before they are used.
//
//   - COCO: a JSON file beside a folder of images. https://cocodataset.org/#format-data
//   - Pascal VOC: an XML file for each image, lists of images, and files with the class of each pixel.
//     http://host.robots.ox.ac.uk/pascal/VOC/voc2012/htmldoc/
//   - YOLO as Ultralytics describes it: a YAML file, folders of images, and a text beside them with the objects of each
//     image. https://docs.ultralytics.com/datasets/
//   - LabelMe: a JSON file for each image. https://github.com/wkentaro/labelme
//   - Folders of images and masks that are matched by their names: Cityscapes, ADE20K, and others like them.
package labels
