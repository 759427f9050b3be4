/** Scales a vector to length 1. @throws RangeError for a vector without a direction: empty, all zeros, or not finite */
export function unitVector (embedding: readonly number[]): Float32Array {
  const length = Math.sqrt(embedding.reduce((sum, each) => sum + each * each, 0))
  if (!Number.isFinite(length) || length === 0) {
    throw new RangeError('An embedding is not usable: it is empty, all zeros, or not finite.')
  }
  return Float32Array.from(embedding, (each) => each / length)
}
