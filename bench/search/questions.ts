import { readFileSync } from 'node:fs'
import type { SearchTool } from '../../plugins/smart-routing/words/index.ts'

export interface Question {
  language: string
  text: string
  /** Tools of which one suffices, as `server/tool`. */
  right: ReadonlySet<string>
  /** Whether the ranking was tuned on it. What others find, one by one, was not looked at. */
  isTuned: boolean
}

interface Catalogues { servers: Array<{ name: string, package: string, version: string, license: string, tools: ServerTool[] }> }
interface ServerTool { name: string, title?: string, description?: string, inputSchema?: unknown }

/** The questions of both files: those that the ranking was tuned on, and those that are held back. */
export function readQuestions (): Question[] {
  return [...read('questions.txt', true), ...read('questions-held-back.txt', false)]
}

function read (name: string, isTuned: boolean): Question[] {
  return readFileSync(new URL(name, import.meta.url), 'utf8').split('\n').flatMap((line) => {
    if (line === '' || line.startsWith('#')) return []
    const [language = '', text = '', right = ''] = line.split(' | ')
    return [{ language, text, right: new Set(right.split(' ')), isTuned }]
  })
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
