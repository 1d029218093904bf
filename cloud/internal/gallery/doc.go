// Package gallery holds what makes guests want a room: photos, a description and amenities, in Korean and English.
//
// Photos are decoded and encoded again, so no file that a client chose reaches a guest: metadata such as the place where a photo
// was taken is left out. They are JPEG files, because there is no well-kept encoder of AVIF or lossy WebP in pure Go.
package gallery
