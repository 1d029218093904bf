package alert

// Sentence exports sentence.
var Sentence = sentence
