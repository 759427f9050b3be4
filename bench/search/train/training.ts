import { stopWords } from '../../../plugins/extensions/smart-routing/words/stop-words.ts'
import { modelWordsOf } from '../../../plugins/extensions/smart-routing/static-model/model.ts'
import { firstSentence } from '../../../plugins/extensions/smart-routing/static-model/similarity.ts'
import type { Definition } from './sources.ts'

/** `words`: in the vocabulary. `least`: definitions that must have a word. `rare`: the a of SIF weights. */
const size = { words: 10_000, dimensions: 100, least: 3 }
const rare = 1e-3
/** Contrastive learning: pairs in a batch, rounds, the temperature of the softmax, and the step of Adagrad. */
const learning = { batch: 128, rounds: 10, temperature: 0.1, step: 0.3, seed: 38 }

type Given = (word: string) => Float32Array | undefined

/** A vocabulary and its vectors, one after another. */
export interface Trained { readonly words: readonly string[], readonly vectors: Float32Array }

const isWord = (word: string): boolean => /^[a-z]{2,24}$/.test(word) && !stopWords.has(word)
const wordsIn = (text: string): string[] => [...new Set(modelWordsOf(text, 60).filter(isWord))]

/**
 * Trains vectors of words on definitions: the first sentence of a description must be nearer to the name and the
 * parameters of its own tool than to those of others.
 * @param given pretrained vectors, and their words, the most frequent first
 */
export function train (definitions: readonly Definition[], frequent: readonly string[], given: Given): Trained {
  const random = generator(learning.seed)
  const pairs = definitions.map(({ name, description, parameters }) => (
    { question: wordsIn(firstSentence(description)), tool: wordsIn(`${name} ${parameters.join(' ')}`), name: name.toLowerCase() }
  )).filter(({ question, tool }) => question.length > 1 && tool.length > 0)
  const words = vocabularyOf(pairs.map(({ question, tool }) => [...new Set([...question, ...tool])]), frequent, given)
  const rows = new Map(words.map((word, row) => [word, row]))
  const vectors = startOf(words, rows, pairs, given)
  const rowsOf = (list: readonly string[]): number[] => list.flatMap((word) => rows.get(word) ?? [])
  const coded = pairs.map(({ question, tool, name }) => ({ question: rowsOf(question), tool: rowsOf(tool), name }))
    .filter(({ question, tool }) => question.length > 0 && tool.length > 0)
  const squares = new Float32Array(vectors.length).fill(1e-6)
  for (let round = 0; round < learning.rounds; round++) {
    shuffle(coded, random)
    for (let at = 0; at + learning.batch <= coded.length; at += learning.batch) {
      learn(coded.slice(at, at + learning.batch), vectors, squares)
    }
  }
  return { words, vectors }
}

/** The words of the definitions that are frequent enough, then the most frequent pretrained ones. */
function vocabularyOf (texts: ReadonlyArray<readonly string[]>, frequent: readonly string[], given: Given): string[] {
  const counts = new Map<string, number>()
  for (const text of texts) for (const word of text) counts.set(word, (counts.get(word) ?? 0) + 1)
  const own = [...counts].filter(([, count]) => count >= size.least)
    .sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).map(([word]) => word)
  const others = frequent.filter((word) => isWord(word) && given(word) !== undefined)
  return [...new Set([...own.slice(0, size.words * 0.7), ...others])].slice(0, size.words)
}

/** Pretrained vectors without what all have in common, each times its SIF weight. */
function startOf (
  words: readonly string[], rows: ReadonlyMap<string, number>,
  pairs: ReadonlyArray<{ question: readonly string[], tool: readonly string[] }>, given: Given
): Float32Array {
  const { dimensions } = size
  const counts = new Float64Array(words.length)
  for (const { question, tool } of pairs) {
    for (const word of [...question, ...tool]) counts[rows.get(word) ?? -1] = (counts[rows.get(word) ?? -1] ?? 0) + 1
  }
  const total = counts.reduce((sum, count) => sum + count, 0)
  const vectors = new Float32Array(words.length * dimensions)
  const mean = new Float32Array(dimensions)
  const contexts = contextsOf(words, pairs, given)
  for (const [row, word] of words.entries()) {
    const vector = given(word) ?? contexts.get(word) ?? mean
    vectors.set(vector, row * dimensions)
    for (let i = 0; i < dimensions; i++) mean[i] = (mean[i] ?? 0) + (vector[i] ?? 0) / words.length
  }
  for (let at = 0; at < vectors.length; at++) {
    const weight = rare / (rare + (counts[Math.floor(at / dimensions)] ?? 0) / total)
    vectors[at] = ((vectors[at] ?? 0) - (mean[at % dimensions] ?? 0)) * weight
  }
  return vectors
}

/** For each word without a pretrained vector: the mean of the words beside it. */
function contextsOf (
  words: readonly string[], pairs: ReadonlyArray<{ question: readonly string[], tool: readonly string[] }>, given: Given
): Map<string, Float32Array> {
  const sums = new Map(words.filter((word) => given(word) === undefined).map((word) =>
    [word, { sum: new Float32Array(size.dimensions), count: 0 }]))
  for (const { question, tool } of pairs) {
    const text = [...question, ...tool]
    const unknown = text.flatMap((word) => sums.get(word) ?? [])
    if (unknown.length === 0) continue
    const others = text.flatMap((word) => given(word) ?? [])
    for (const each of unknown) {
      each.count += others.length
      for (const vector of others) for (let i = 0; i < vector.length; i++) each.sum[i] = (each.sum[i] ?? 0) + (vector[i] ?? 0)
    }
  }
  return new Map([...sums].map(([word, { sum, count }]) => [word, sum.map((value) => value / Math.max(1, count))]))
}

interface Coded { readonly question: readonly number[], readonly tool: readonly number[], readonly name: string }

/** One step of Adagrad on the symmetric cross entropy of a batch. */
function learn (batch: readonly Coded[], vectors: Float32Array, squares: Float32Array): void {
  const questions = batch.map(({ question }) => embedded(question, vectors))
  const tools = batch.map(({ tool }) => embedded(tool, vectors))
  const n = batch.length
  const logits = new Float64Array(n * n)
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) {
      const isSame = i !== j && batch[i]?.name === batch[j]?.name
      logits[i * n + j] = isSame ? -Infinity : dot(questions[i]?.unit, tools[j]?.unit) / learning.temperature
    }
  }
  const slopes = slopesOf(logits, n)
  const gradients = new Map<number, Float32Array>()
  for (let i = 0; i < n; i++) {
    addGradient(gradients, batch[i]?.question ?? [], questions[i], (j) => slopes[i * n + j] ?? 0, tools)
    addGradient(gradients, batch[i]?.tool ?? [], tools[i], (j) => slopes[j * n + i] ?? 0, questions)
  }
  for (const [row, gradient] of gradients) {
    for (let i = 0; i < gradient.length; i++) {
      const [at, slope] = [row * gradient.length + i, gradient[i] ?? 0]
      squares[at] = (squares[at] ?? 0) + slope * slope
      vectors[at] = (vectors[at] ?? 0) - learning.step * slope / Math.sqrt(squares[at] ?? 1)
    }
  }
}

/** The slopes of the mean loss, of rows and of columns, by each logit. */
function slopesOf (logits: Float64Array, n: number): Float64Array {
  const slopes = new Float64Array(n * n)
  for (const [outer, inner] of [[n, 1], [1, n]] as const) {
    for (let i = 0; i < n; i++) {
      let most = -Infinity
      for (let j = 0; j < n; j++) most = Math.max(most, logits[i * outer + j * inner] ?? 0)
      let sum = 0
      for (let j = 0; j < n; j++) sum += Math.exp((logits[i * outer + j * inner] ?? 0) - most)
      for (let j = 0; j < n; j++) {
        const at = i * outer + j * inner
        slopes[at] = (slopes[at] ?? 0) + (Math.exp((logits[at] ?? 0) - most) / sum - (i === j ? 1 : 0)) / (2 * n)
      }
    }
  }
  return slopes
}

interface Embedded { readonly unit: Float32Array, readonly length: number }

function embedded (rows: readonly number[], vectors: Float32Array): Embedded {
  const sum = new Float32Array(size.dimensions)
  for (const row of rows) for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] ?? 0) + (vectors[row * sum.length + i] ?? 0)
  const length = Math.max(1e-9, Math.sqrt(dot(sum, sum)))
  return { unit: sum.map((value) => value / length), length }
}

/** Adds to each word of a text the slope of the loss, through the length of the text's vector. */
function addGradient (
  gradients: Map<number, Float32Array>, rows: readonly number[], text: Embedded | undefined,
  slopeOf: (other: number) => number, others: readonly Embedded[]
): void {
  if (!text) return
  const slope = new Float32Array(size.dimensions)
  for (const [j, { unit }] of others.entries()) {
    const each = slopeOf(j) / learning.temperature
    if (each !== 0) for (let i = 0; i < slope.length; i++) slope[i] = (slope[i] ?? 0) + each * (unit[i] ?? 0)
  }
  const along = dot(slope, text.unit)
  for (let i = 0; i < slope.length; i++) slope[i] = ((slope[i] ?? 0) - along * (text.unit[i] ?? 0)) / text.length
  for (const row of rows) {
    const before = gradients.get(row)
    if (!before) gradients.set(row, slope.slice())
    else for (let i = 0; i < slope.length; i++) before[i] = (before[i] ?? 0) + (slope[i] ?? 0)
  }
}

function dot (one: Float32Array | undefined, other: Float32Array | undefined): number {
  if (!one || !other) return 0
  let sum = 0
  for (let i = 0; i < one.length; i++) sum += (one[i] ?? 0) * (other[i] ?? 0)
  return sum
}

function shuffle (list: unknown[], random: () => number): void {
  for (let i = list.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1))
    ;[list[i], list[j]] = [list[j], list[i]]
  }
}

/** Random numbers from 0 to 1, the same ones for the same seed (mulberry32). */
function generator (seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
