import type { SearchableTool } from '../../plugins/extensions/smart-routing/words/index.ts'

/**
 * Many tools: copies of real ones, 100 to a server, each with six of 10,000 invented words in its description and two in its name.
 * Descriptions and schemas are cut to what is usual: 400 characters and six properties.
 */
export function syntheticTools (real: readonly SearchableTool[], count: number): SearchableTool[] {
  const random = generator(7)
  const oneOf = <T>(list: readonly T[]): T | undefined => list[Math.floor(random() * list.length)]
  const words = Array.from({ length: 10_000 }, () => Array.from({ length: 2 + Math.floor(random() * 4) }, () => oneOf(syllables)).join(''))
  const word = (): string => oneOf(words) ?? ''
  return Array.from({ length: count }, (_, i) => {
    const { ownName, title, description = '', inputSchema } = real[i % real.length] ?? { ownName: 'tool' }
    const server = `server-${Math.floor(i / 100)}`
    const name = `${ownName}_${word()}_${word()}`
    const own = Array.from({ length: 6 }, word).join(' ')
    return { name: `${server}-${name}`, ownName: name, server, title, description: `${description.slice(0, 400)} ${own}`, inputSchema: cut(inputSchema) }
  })
}

const syllables = 'ba be bi bo bu da de di do du fa fe fi fo fu ka ke ki ko ku la le li lo lu ma me mi mo mu na ne ni no nu ra re ri ro ru sa se si so su'.split(' ')

function cut (schema: unknown): unknown {
  const { properties = {} } = schema as { properties?: Record<string, unknown> }
  return { type: 'object', properties: Object.fromEntries(Object.entries(properties).slice(0, 6)) }
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
