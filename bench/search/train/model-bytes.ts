import { modelHeaderLength, modelMagic } from '../../../plugins/extensions/smart-routing/static-model/model.ts'

/** The bytes of a model's file. @param vectors the vector of each word, one after another */
export function modelBytes (words: readonly string[], vectors: Float32Array): Uint8Array {
  const dimensions = vectors.length / words.length
  const text = Buffer.from(words.join('\n'))
  const scales = Math.ceil((modelHeaderLength + text.length) / 4) * 4
  const bytes = new Uint8Array(scales + 4 * words.length + vectors.length)
  bytes.set(Buffer.from(modelMagic, 'latin1'))
  bytes.set(text, modelHeaderLength)
  const view = new DataView(bytes.buffer)
  for (const [at, value] of [words.length, dimensions, text.length].entries()) view.setUint32(4 + 4 * at, value, true)
  for (let row = 0; row < words.length; row++) {
    const vector = vectors.subarray(row * dimensions, (row + 1) * dimensions)
    const scale = vector.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 127
    view.setFloat32(scales + 4 * row, scale, true)
    const from = scales + 4 * words.length + row * dimensions
    for (let i = 0; i < dimensions; i++) view.setInt8(from + i, scale > 0 ? Math.round((vector[i] ?? 0) / scale) : 0)
  }
  return bytes
}
