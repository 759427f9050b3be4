import { basename } from 'node:path'
import { Type } from '@sinclair/typebox'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { limitFormFields, readBodyText, chunkedBodyReserver } from '../../plugins/base/body/index.ts'
import { errors } from '../../plugins/base/errors/index.ts'
import { sendPage } from '../../plugins/base/pages/index.ts'
import { publicBaseUrl } from '../../plugins/settings/index.ts'
import { isStartPageToken, startPageToken } from '../../plugins/upstream/index.ts'
import { addBodyMemoryReservation } from '../bodies.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { browserKeyOf, ensureBrowserKey } from './browser-key.ts'

/** Max size of a form, in bytes. */
const maxForm = 256 * 1024
/** The prefix of the form fields that contain values. */
const fieldPrefix = 'value.'

type Page = NonNullable<Awaited<ReturnType<FastifyInstance['userValues']['findPage']>>>

const showProblem = async (reply: FastifyReply, title: string, text: string): Promise<FastifyReply> =>
  await sendPage(reply, reply.server.pages.problem({ title, text, status: 400 }))

const showUnknown = async (reply: FastifyReply): Promise<FastifyReply> =>
  await showProblem(reply, 'This page is not known', 'It was already used or is too old, the values or the server ' +
    'have changed since then, or the gateway was restarted. Call the server again for a new address. ' +
    'Nothing was changed.')

/** Returns a phrase that tells the user where the values for a server are sent. */
function destinationOf ({ command, url = '', openapi }: Page['server']['config']): string {
  if (command !== undefined) return `the program ${basename(command)}, which runs at this gateway`
  const address = url === '' ? openapi?.url ?? '' : url
  if (address === '') return 'the addresses in its OpenAPI description'
  if (URL.canParse(address)) return new URL(address).origin
  // The address contains environment variables, which are expanded when the server is connected: only its scheme and
  // host are shown, without credentials.
  return address.replace(/^([a-z]+:\/\/)(?:[^/?#]*@)?([^/?#]*).*$/is, '$1$2')
}

/** Returns the user who is signed in in this browser (social login) if it is another than `user`. */
async function otherUserOf ({ headers, server }: FastifyRequest, user: string): Promise<string | undefined> {
  const session = await server.social.identify(headers, server.settings.current)
  return session?.user === user ? undefined : session?.user
}

const showOtherUser = async (reply: FastifyReply, user: string, other: string): Promise<FastifyReply> =>
  await showProblem(
    reply,
    'This page belongs to somebody else',
    `You are signed in here as ${other}, and this address is for the user ${user}. Nothing was changed.`
  )

/**
 * Responds with the form in which a user enters the values that a server needs.
 * @param error why the values submitted before were not stored
 */
async function showForm (
  request: FastifyRequest, reply: FastifyReply, ticket: string, { server, user }: Page, error?: string
): Promise<FastifyReply> {
  const app = request.server
  const { protocol, pathname } = new URL(publicBaseUrl(app))
  const folder = `${pathname.replace(/\/$/, '')}/oauth`
  const key = ensureBrowserKey(request, reply, folder, protocol === 'https:')
  return await sendPage(reply, app.pages.userValues({
    server: server.name,
    whose: `the user ${user}`,
    destination: destinationOf(server.config),
    variables: await app.userValues.describe(server, user),
    action: `${folder}/login/${ticket}`,
    csrf: startPageToken(key, ticket),
    hidden: {},
    ...(error === undefined ? {} : { error })
  }))
}

/**
 * Responds with the page on which a user enters the values that a server needs.
 * @param ticket the part of the page's URL that identifies the user and the server
 * @returns false if the ticket is unknown or no longer valid, so that nothing was sent. It is not the reply, which is a
 * thenable: awaited, it would be undefined.
 */
export async function sendUserValuesPage (
  request: FastifyRequest, reply: FastifyReply, ticket: string
): Promise<boolean> {
  const page = await request.server.userValues.findPage(ticket)
  if (!page) return false
  const other = await otherUserOf(request, page.user)
  await (other === undefined ? showForm(request, reply, ticket, page) : showOtherUser(reply, page.user, other))
  return true
}

/** The route that stores the values which a user submits on the page of `sendUserValuesPage`. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.removeAllContentTypeParsers()
  addBodyMemoryReservation(app, maxForm)
  app.addContentTypeParser('application/x-www-form-urlencoded', async (
    request: FastifyRequest, payload: FastifyRequest['raw']
  ) => limitFormFields(await readBodyText(payload, maxForm, chunkedBodyReserver(request))))

  app.post('/oauth/login/:ticket', {
    schema: { hide: true, params: Type.Object({ ticket: Type.String({ maxLength: 100 }) }) },
    config: { effect: 'change' },
    onRequest: (request, _reply, done) => {
      app.auth.checkOrigin(request)
      done()
    }
  }, async (request, reply) => {
    const { ticket } = request.params
    const fields = new URLSearchParams(typeof request.body === 'string' ? request.body : '')
    const page = await app.userValues.findPage(ticket)
    if (!page) return await showUnknown(reply)
    const { server, user } = page
    const other = await otherUserOf(request, user)
    if (other !== undefined) return await showOtherUser(reply, user, other)
    if (!isStartPageToken(fields.get('csrf') ?? '', browserKeyOf(request), ticket)) {
      return await showProblem(reply, 'This form was opened in another browser', 'Open the address in this browser, ' +
        'which must accept cookies of this gateway, and fill in its form. Nothing was changed.')
    }
    const given = Object.fromEntries([...fields].flatMap(([name, value]) =>
      name.startsWith(fieldPrefix) && value !== '' ? [[name.slice(fieldPrefix.length), value]] : []))
    const names = Object.keys(given)
    if (names.length === 0) return await showForm(request, reply, ticket, page, 'Fill in a value; nothing was stored')
    const { name } = server
    try {
      if (!await app.userValues.giveOnPage(page, given)) return await showUnknown(reply)
    } catch (error) {
      if (!(error instanceof errors.InvalidInput)) throw error
      return await showForm(request, reply, ticket, page, error.message)
    }
    app.audit.addChange(user, { entity: 'values', name, after: { server: name, user, names } })
    return await sendPage(reply, app.pages.done({
      title: 'Your values were stored',
      text: `Tool-Hub now uses them at server ${JSON.stringify(name)}, for the user ${user}. You can close ` +
        'this window.'
    }))
  })
}
export default routes
