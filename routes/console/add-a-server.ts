import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { errors } from '../../plugins/base/errors/index.ts'
import { ApiError, type PageData } from '../../plugins/management/index.ts'
import { type Form, pagesOf, textOf } from './page.ts'
import { pageOf, targetOf, transportOf } from './states.ts'

/** A server that was read from the pasted text, as the fields of the form. */
interface Entry {
  readonly index: number
  readonly name: string
  /** As JSON text. */
  readonly config: string
  readonly isChosen: boolean
  readonly remarks: readonly string[]
  readonly problem?: string
  readonly tested?: { readonly isOk: boolean, readonly text: string }
}

/** Page: add servers from a pasted text. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit } = app
  const data = { title: 'Add a server' }
  pagesOf(app).page('add-a-server', { ...data, isInNav: true }, () => ({}))

  app.post('/add-a-server', { config: { effect: 'change' } }, async (request, reply) => {
    const form = (request.body ?? {}) as Form
    const text = textOf(form.text)
    const show = (
      entries: readonly Entry[] | undefined, wrong: Errors = {}, notice?: PageData['notice']
    ): FastifyReply =>
      kit.renderer.send(reply, 'add-a-server', {
        ...data,
        ...notice && { notice },
        values: { text },
        errors: wrong,
        ...entries && { entries: entries.map(shown) }
      }, Object.keys(wrong).length > 0 ? 400 : 200)
    if (textOf(form.do) === 'read') {
      try {
        return show(entriesOf(kit.readPasted(text)))
      } catch (error) {
        if (!(error instanceof errors.InvalidInput)) throw error
        return show(undefined, { text: `${error.message.replace(/^"text": /, '')}.` })
      }
    }
    const entries = sentEntries(form)
    const { configs, wrong } = parsed(entries)
    if (Object.keys(wrong).length > 0) return show(entries, wrong)
    if (!entries.some(({ isChosen }) => isChosen)) return show(entries, { '': 'Choose a server first.' })
    if (textOf(form.do) === 'test') return show(await tested(app, request, entries, configs))
    const { stored, left, problems } = await store(app, request, entries, configs)
    const names = stored.map((name) => JSON.stringify(name)).join(', ')
    const notice = { kind: 'done', text: `Added: ${names}. What was added is connecting now.` } as const
    if (left.some(({ isChosen }) => isChosen)) return show(left, problems, stored.length > 0 ? notice : undefined)
    kit.notify(reply, notice)
    const [first = ''] = stored
    return await reply.redirect(stored.length === 1 ? pageOf(kit.base, first) : `${kit.base}/servers`, 303)
  })
}
export default routes

/** Error messages by form field. */
type Errors = Readonly<Record<string, string>>
type Configs = ReadonlyMap<number, Record<string, unknown>>

const entriesOf = (found: ReturnType<FastifyInstance['kit']['readPasted']>): Entry[] =>
  found.map(({ name, config, remarks }, index) =>
    ({ index, name, config: JSON.stringify(config, undefined, 2), isChosen: true, remarks }))

/** Reads the entries from a submitted form. */
function sentEntries (form: Form): Entry[] {
  const chosen = new Set([form.chosen ?? []].flat())
  return Object.keys(form).flatMap((field) => /^name-(\d{1,4})$/.exec(field)?.[1] ?? []).map((index) => ({
    index: Number(index),
    name: textOf(form[`name-${index}`]).trim(),
    config: textOf(form[`config-${index}`]),
    isChosen: chosen.has(index),
    remarks: []
  }))
}

/** The configs of the entries by index, and errors for those that are not JSON objects. */
function parsed (entries: readonly Entry[]): { configs: Configs, wrong: Errors } {
  const configs = new Map<number, Record<string, unknown>>()
  const wrong: Record<string, string> = {}
  for (const { index, config } of entries) {
    try {
      const value: unknown = JSON.parse(config)
      const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
      if (isObject) configs.set(index, value as Record<string, unknown>)
      else wrong[`config-${index}`] = 'A configuration is a JSON object.'
    } catch (error) {
      wrong[`config-${index}`] = `This is not JSON: ${error instanceof Error ? error.message : String(error)}.`
    }
  }
  return { configs, wrong }
}

/** The data of an entry for the page. */
function shown (entry: Entry): object {
  const { configs } = parsed([entry])
  const server = { config: configs.get(entry.index) ?? {} }
  return { ...entry, transport: transportOf(server), target: targetOf(server) }
}

/** Tests the connection to each selected server, without storing any. */
async function tested (
  { kit }: FastifyInstance, request: FastifyRequest, entries: readonly Entry[], configs: Configs
): Promise<Entry[]> {
  return await Promise.all(entries.map(async (entry) => {
    if (!entry.isChosen) return entry
    try {
      const config = configs.get(entry.index)
      const { message, data } = await kit.api.ask(request, 'POST', '/servers/test', { config })
      const { connected, error } = data as { connected: boolean, error: string | null }
      return { ...entry, tested: { isOk: connected, text: [message, ...error === null ? [] : [error]].join(': ') } }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      return { ...entry, problem: `${error.message}.` }
    }
  }))
}

/** Stores the selected servers one after the other. A rejected one does not prevent the others. */
async function store (
  { kit }: FastifyInstance, request: FastifyRequest, entries: readonly Entry[], configs: Configs
): Promise<{ stored: string[], left: Entry[], problems: Errors }> {
  const stored: string[] = []
  const left: Entry[] = []
  const problems: Record<string, string> = {}
  for (const entry of entries) {
    const { index, name, isChosen } = entry
    if (!isChosen) {
      left.push(entry)
      continue
    }
    try {
      await kit.api.ask(request, 'POST', '/servers', { name, config: configs.get(index) })
      stored.push(name)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      const { '': problem, name: ofName, ...others } = error.fields
      left.push({ ...entry, ...problem !== undefined && { problem: `${problem}.` } })
      if (ofName !== undefined) problems[`name-${index}`] = ofName
      const ofConfig = Object.entries(others)
        .map(([field, sentence]) => `${field.replace(/^config\.?/, '') || 'The configuration'}: ${sentence}`)
      if (ofConfig.length > 0) problems[`config-${index}`] = ofConfig.join('\n')
    }
  }
  return { stored, left, problems }
}
