import { readFileSync } from 'node:fs'
import type { SearchTool } from '../../plugins/smart-routing/words/index.ts'

export interface Question {
  language: string
  text: string
  /** Tools of which one suffices, as `server/tool`. */
  right: ReadonlySet<string>
  /** The half that the ranking was tuned on. The other was not looked at meanwhile. */
  isTuned: boolean
}

interface Catalogues { servers: Array<{ name: string, package: string, version: string, license: string, tools: ServerTool[] }> }
interface ServerTool { name: string, title?: string, description?: string, inputSchema?: unknown }

/** All questions of questions.txt. A hash of the question chooses its half; those that were added while tuning are tuned on. */
export function readQuestions (): Question[] {
  const lines = readFileSync(new URL('questions.txt', import.meta.url), 'utf8').split('\n')
  const allTuned = lines.findIndex((line) => line.startsWith('# All of these'))
  return lines.flatMap((line, i) => {
    if (line === '' || line.startsWith('#')) return []
    const [language = '', text = '', right = ''] = line.split(' | ')
    return [{ language, text, right: new Set(right.split(' ')), isTuned: i > allTuned || hash(text) % 2 === 0 }]
  })
}

/** FNV-1a, with the bits mixed once more. */
function hash (text: string): number {
  let value = 0x811c9dc5
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x01000193) >>> 0
  return (value ^ (value >>> 15)) >>> 0
}

/** The tools of all servers of tools.json, as the gateway shows them on the merged route. */
export function readTools (): { servers: number, tools: SearchTool[] } {
  const { servers } = JSON.parse(readFileSync(new URL('tools.json', import.meta.url), 'utf8')) as Catalogues
  const tools = servers.flatMap(({ name: server, tools }) => tools.map(({ name, title, description, inputSchema }) => (
    { name: `${server}-${name}`, ownName: name, server, title, description, inputSchema }
  )))
  return { servers: servers.length, tools }
}

/** A tool as the questions name it. */
export const keyOf = ({ server, ownName }: SearchTool): string => `${server}/${ownName}`
