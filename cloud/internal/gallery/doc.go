// Package gallery holds what makes guests want a room: photos, a description and amenities, in Korean and English.
//
// Photos are decoded and encoded again, so no file that a client chose reaches a guest: metadata such as the place where a photo
// was taken is left out. Each is a JPEG file with the same picture in WebP and AVIF, which a browser that accepts them gets at the
// same address. The encoders are WebAssembly; the build tag nodynamic keeps them from loading a library of the machine, which
// would also make the program depend on the C library.
package gallery
