// Servers with skills (SEP-2640), as recordings: what each request is answered with, of both eras.
import { createHash } from 'node:crypto'
import { startBareModern } from './bare-modern.ts'
import { Refusal, startUpstream } from './fault-http.ts'
import type { Json } from '../helpers/client.ts'
import type { Cleanup } from '../helpers/hub.ts'

/** The files of a skill by their paths in its folder. */
type Files = Readonly<Record<string, string>>
export const mainFile = (name: string, more = ''): string => `---\nname: ${name}\ndescription: How to ${name}\n${more}---\n\n# ${name}\n`

const fact = (text: string): { digest: string, size: number } =>
  ({ digest: `sha256:${createHash('sha256').update(text).digest('hex')}`, size: Buffer.byteLength(text) })

export class SkillWorld {
  /** By folder. */
  readonly skills: Map<string, Files>
  /** Served, and in no list. */
  readonly unlisted = new Set<string>()
  readonly #directoryRead: boolean

  constructor (skills: Readonly<Record<string, Files>>, directoryRead = true) {
    this.skills = new Map(Object.entries(skills))
    this.#directoryRead = directoryRead
  }

  get capabilities (): Json {
    const skills = this.#directoryRead ? { directoryRead: true } : {}
    return { tools: {}, resources: { listChanged: true }, extensions: { 'io.modelcontextprotocol/skills': skills } }
  }

  entry (folder: string): Json {
    const name = folder.slice(folder.lastIndexOf('/') + 1)
    const files = Object.entries(this.skills.get(folder) ?? {})
    return {
      uri: `${folder}/SKILL.md`,
      frontmatter: { name, description: `How to ${name}`, metadata: { version: '2.1.0' }, 'allowed-tools': 'Bash(git:*)' },
      resources: files.length > 1 || name !== 'daily' ? files.map(([path, text]) => ({ uri: `${folder}/${path}`, ...fact(text) })) : 'dynamic',
      _meta: { 'com.example/x': [1, null] }
    }
  }

  /** The result of a request of the extension; undefined: it is none. */
  answer (method: string, { uri = '' }: { uri?: string }, caching: Json): Json | Refusal | undefined {
    const folders = [...this.skills.keys()]
    switch (method) {
      case 'skills/list': return { skills: folders.filter((each) => !this.unlisted.has(each)).map((each) => this.entry(each)), ...caching }
      case 'skills/get': {
        const folder = folders.find((each) => `${each}/SKILL.md` === uri)
        return folder === undefined ? new Refusal(-32602, `No skill is served at ${uri}`) : { skill: this.entry(folder), ...caching }
      }
      case 'resources/directory/read': {
        if (!this.#directoryRead) return new Refusal(-32601, 'Method not found')
        const paths = folders.flatMap((each) => Object.keys(this.skills.get(each) ?? {}).map((path) => `${each}/${path}`))
        const inside = paths.filter((path) => path.startsWith(`${uri}/`)).map((path) => path.slice(uri.length + 1).split('/'))
        if (inside.length === 0) return new Refusal(-32602, `${uri} is not a directory resource`)
        const children = new Map(inside.map(([name = '', ...below]) => [name, below.length > 0]))
        return {
          resources: [...children].map(([name, isFolder]) => ({ uri: `${uri}/${name}`, name, mimeType: isFolder ? 'inode/directory' : 'text/markdown' }))
        }
      }
      case 'resources/read':
        for (const [folder, files] of this.skills) {
          for (const [path, text] of Object.entries(files)) {
            if (uri === `${folder}/${path}`) return { contents: [{ uri, mimeType: 'text/markdown', text }], ...caching }
          }
        }
        return new Refusal(-32602, `Resource not found: ${uri}`, { uri })
      case 'resources/list': return {
        resources: folders.filter((each) => !this.unlisted.has(each)).map((each) => ({ uri: `${each}/SKILL.md`, name: each, mimeType: 'text/markdown' })),
        ...caching
      }
      case 'resources/templates/list': return { resourceTemplates: [{ uriTemplate: 'skill://{+path}', name: 'skill-file' }], ...caching }
      default: return undefined
    }
  }
}

/** A running server: its address, a notification of it, and how often it was asked for a method. */
export interface SkillServer {
  readonly url: string
  readonly notify: (method: string) => Promise<void>
  readonly count: (method: string) => number
}

export async function startLegacySkills (t: Cleanup, world: SkillWorld): Promise<SkillServer> {
  const upstream = await startUpstream(t, {
    tools: [{ name: 'echo', inputSchema: { type: 'object' } }],
    capabilities: world.capabilities,
    on: ({ method, params }) => world.answer(method, params, {})
  })
  return { url: upstream.url, notify: async (method) => { await upstream.broadcast(method) }, count: (method) => upstream.count(method) }
}

export async function startModernSkills (t: Cleanup, world: SkillWorld): Promise<SkillServer> {
  const { url, seen } = await startBareModern(t, [{ name: 'echo', inputSchema: { type: 'object' } }], ({ method, params }) => {
    const answer = world.answer(method, params, { ttlMs: 300_000, cacheScope: 'public' })
    if (answer === undefined) return undefined
    return answer instanceof Refusal ? { error: answer.error } : { result: { resultType: 'complete', ...answer } }
  }, { ...world.capabilities, resources: {} })
  return { url, notify: async () => {}, count: (method) => seen.filter((each) => each.method === method).length }
}
