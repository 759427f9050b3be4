import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { ApiError, type Notice, type PageData } from '../../plugins/management/index.ts'
import type { Principal } from '../../plugins/settings/index.ts'
import { revisionOfServerConfig } from '../entity-tag.ts'
import {
  argumentFieldsIn, editConflictMessage, isEditConflict, noticeOfAnswer, parseJsonObjectOrProblem, createPageRouter,
  revisionIn, formFieldText, type Visit
} from './page.ts'
import { describeTestResult } from './entries.ts'
import { serverHeadOf, canManageServer } from './server-head.ts'
import { serverPageUrl } from './server-states.ts'

type Config = Readonly<Record<string, unknown>>
type Texts = Readonly<Record<string, string>>

/** The page on which a server's config is changed, as a form or as JSON. */
const routes: FastifyPluginAsync = async (app) => {
  const { api, renderer, serverFormOf } = app.kit
  const { page, form } = createPageRouter(app)
  const path = '/servers/:name/configuration'

  page('server-configuration', { title: 'Configuration', path }, async (visit) => {
    const { config, data } = await toPageData(app, visit)
    return { ...data, ...asForm(app, visit, config) ?? asJson(config) }
  })

  form(path, { effect: 'change' }, async (visit) => {
    const { params: { name = '' }, principal, request, form: sent } = visit
    app.servers.assertCanManage(principal, name)
    const { config: stored, data } = await toPageData(app, visit)
    const showAgain = (
      edited: EditedConfig, notice?: Notice, status = Object.keys(edited.errors ?? {}).length > 0 ? 400 : 200
    ): undefined => {
      renderer.send(visit.reply, 'server-configuration', { ...data, ...edited, ...notice && { notice } }, status)
    }
    const edited = editedOf(app, visit, stored)
    const { config } = edited
    if (config === undefined) return showAgain(edited)
    const server = `/servers/${encodeURIComponent(name)}`
    try {
      if (formFieldText(sent.do) === 'test') {
        const { isOk, text } = describeTestResult(await api.ask(request, 'POST', '/servers/test', { name, config }))
        return showAgain(edited, { kind: isOk ? 'done' : 'error', text: `${text}. Nothing was stored.` })
      }
      const done = await api.ask(request, 'PUT', server, { config }, revisionIn(sent))
      const notice = noticeOfAnswer(done)
      const hint = teamHint(app, principal, config)
      return {
        to: `${server}/configuration`,
        notice: hint === undefined ? notice : { kind: 'warning', text: `${notice.text} ${hint}` }
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (isEditConflict(error)) {
        const now = await toPageData(app, { ...visit, form: {} })
        return showAgain({
          ...edited,
          revision: now.data.revision,
          errors: { '': editConflictMessage },
          isConflict: true,
          stored: JSON.stringify(now.config, undefined, 2)
        }, undefined, error.statusCode)
      }
      const asText = Object.entries(error.fields).map(([member, text]) =>
        [member.replace(/^config\.?/, ''), text].filter((part) => part !== '').join(': ')).join('\n')
      return showAgain({
        ...edited,
        errors: edited.mode === 'json'
          ? { json: asText }
          : serverFormOf(config, principal.isAdmin).toFieldErrors(error.fields, argumentFieldsIn(sent))
      })
    }
  })
}
export default routes

/**
 * The edited config, as data for the page template. `config`: the config to test or store; undefined if the page is
 * only shown again.
 */
interface EditedConfig extends Partial<PageData> {
  readonly mode: 'form' | 'json'
  readonly errors?: Texts
  readonly config?: Config
}

async function toPageData (
  app: FastifyInstance, { principal, params: { name = '' }, form: sent }: Visit
): Promise<{ config: Config, data: PageData }> {
  const server = await app.servers.getWithLoginUrl(principal, name)
  const data = {
    title: `Configuration of ${name}`,
    ...serverHeadOf(app, principal, server, 'configuration'),
    isEditable: canManageServer(app, principal, name),
    revision: revisionIn(sent) ?? revisionOfServerConfig(server.config),
    rename: `${serverPageUrl(app.kit.base, name)}/rename`
  }
  return { config: server.config, data }
}

/** Returns a hint that a team is written as `@name`, if a server is shared with a name that only a team has. */
function teamHint (
  { teams, users }: FastifyInstance, principal: Principal, { sharedWithUsers: names }: Config
): string | undefined {
  if (!Array.isArray(names)) return undefined
  const meant = teams.list(principal)
    .find(({ name }) => names.includes(name) && !(principal.isAdmin && users.get(name)))?.name
  return meant && `${JSON.stringify(meant)} is a team: to share the server with it, write "@${meant}".`
}

const asJson = (config: Config): EditedConfig => ({ mode: 'json', json: JSON.stringify(config, undefined, 2) })

/** Returns a config as a form; undefined if a form cannot show the config. */
function asForm ({ kit }: FastifyInstance, { principal }: Visit, config: Config): EditedConfig | undefined {
  const form = kit.serverFormOf(config, principal.isAdmin)
  const draft = form.toDraft(config)
  return draft && { mode: 'form', type: form.type, rest: JSON.stringify(config), ...form.fields(draft) }
}

/** Removes the overrides of items, since they have their own forms. The API keeps overrides that a config omits. */
const withoutOverrides = (
  { tools: _tools, prompts: _prompts, resources: _resources, skills: _skills, ...config }: Config
): Config => config

/** Returns what a submitted form leads to, according to the button that was pressed: another form, or a new config. */
function editedOf (app: FastifyInstance, visit: Visit, stored: Config): EditedConfig {
  const { kit } = app
  const { principal: { isAdmin }, form: sent } = visit
  const button = formFieldText(sent.do)
  if (formFieldText(sent.mode) === 'json') {
    const json = formFieldText(sent.json)
    const config = parseJsonObjectOrProblem(json, 'A configuration is')
    if (typeof config === 'string') return { mode: 'json', json, errors: { json: config } }
    if (button !== 'form') return { mode: 'json', json, config }
    return asForm(app, visit, config) ??
      { mode: 'json', json, errors: { json: 'The form cannot show this: it expects values of other types.' } }
  }
  const rest = parseJsonObjectOrProblem(formFieldText(sent.rest), 'A configuration is')
  const former = typeof rest === 'string' ? {} : rest
  const form = kit.serverFormOf({ type: formFieldText(sent.type) }, isAdmin)
  const values = argumentFieldsIn(sent)
  if (/^(?:add|remove):/.test(button)) {
    return {
      mode: 'form',
      type: form.type,
      rest: formFieldText(sent.rest),
      ...form.fields(form.applyButton(values, button))
    }
  }
  const switched = form.switchType(values, former)
  const again: EditedConfig = {
    mode: 'form', type: switched.form.type, rest: JSON.stringify(switched.base), ...switched.form.fields(switched.draft)
  }
  if (button === 'choose:type') return again
  const read = form.read(values, former, stored)
  if ('errors' in read) return { ...again, errors: read.errors }
  return button === 'json' ? asJson(read.config) : { ...again, config: withoutOverrides(read.config) }
}
