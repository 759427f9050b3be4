import { readFileSync } from 'node:fs'
import type { SearchableTool } from '../../plugins/extensions/smart-routing/words/index.ts'

export interface Question {
  language: string
  text: string
  /** Tools of which one suffices, as `server/tool`. */
  right: ReadonlySet<string>
  set: QuestionSet
}

/**
 * `tuned`: the ranking was tuned on it. `drawn`: it asks for a tool that a random draw chose; it was held back at first, and looked at
 * later. `another`: another author wrote it, who knew neither the ranking nor the lexicons, for what people would often ask; what these
 * find was never looked at, one by one. `fresh`: by a third author, for a uniform draw of the tools, and never looked at. `others`: the
 * same by a fourth, for servers that neither the ranking nor the lexicons were tuned on.
 */
export type QuestionSet = 'tuned' | 'drawn' | 'another' | 'fresh' | 'others'

interface Catalogues { servers: Array<{ name: string, package: string, version: string, license: string, tools: ServerTool[] }> }
interface ServerTool { name: string, title?: string, description?: string, inputSchema?: unknown }

/** The questions about the tools of tools.json: those that the ranking was tuned on, and those that are held back. */
export function readQuestions (): Question[] {
  return [
    ...read('questions.txt', 'tuned'),
    ...read('questions-drawn.txt', 'drawn'),
    ...read('questions-of-another.txt', 'another'),
    ...read('questions-fresh.txt', 'fresh')
  ]
}

/** The tools of servers that nothing was tuned on, and questions about them, which are held back. */
export function readOthers (): { servers: number, tools: SearchableTool[], questions: Question[] } {
  return { ...readTools('tools-of-others.json'), questions: read('questions-of-others.txt', 'others') }
}

function read (name: string, set: QuestionSet): Question[] {
  return readFileSync(new URL(name, import.meta.url), 'utf8').split('\n').flatMap((line) => {
    if (line === '' || line.startsWith('#')) return []
    const [language = '', text = '', right = ''] = line.split(' | ')
    return [{ language, text, right: new Set(right.split(' ')), set }]
  })
}

/** The tools of all servers of a file, as the gateway shows them on the merged route. */
export function readTools (name = 'tools.json'): { servers: number, tools: SearchableTool[] } {
  const { servers } = JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8')) as Catalogues
  const tools = servers.flatMap(({ name: server, tools }) => tools.map(({ name, title, description, inputSchema }) => (
    { name: `${server}-${name}`, ownName: name, server, title, description, inputSchema }
  )))
  return { servers: servers.length, tools }
}

/** A tool as the questions name it. */
export const keyOf = ({ server, ownName }: SearchableTool): string => `${server}/${ownName}`
