import type { FastifyPluginAsync, FastifyReply } from 'fastify'
import { errors } from '../../plugins/base/errors/index.ts'
import { isLocalRequest } from '../../plugins/identity/index.ts'
import { type SubmittedForm, formFieldText } from './page.ts'

const passwordRule = 'At least 6 characters. Better: 8 or more, with a letter, a digit and another character.'
const linkAdvice =
  'The link works once, for 15 minutes, on the machine that runs the gateway. Sign in with the password that ' +
  'the gateway printed, or wrote to the file named in its log.'

/** The page of the one-time link of the first start. It sets the first admin's password, and signs the admin in. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit, users } = app
  const { welcome } = app.console

  const show = (reply: FastifyReply, code: string, username: string, failed?: Record<string, string>): FastifyReply => {
    const data = { title: 'Welcome', code, username, rule: passwordRule, errors: failed ?? {} }
    return kit.renderer.send(reply, 'welcome', data, failed ? 400 : 200)
  }
  const refuse = (reply: FastifyReply): FastifyReply => {
    const back = { label: 'Sign in', href: `${kit.base}/login` }
    const data = { title: 'This link no longer works', status: 403, text: linkAdvice, back }
    return kit.renderer.send(reply, 'error', data, 403)
  }

  app.get('/welcome', { config: { effect: 'read' }, exposeHeadRoute: false }, async (request, reply) => {
    const { code } = request.query as { code?: unknown }
    const user = typeof code === 'string' && isLocalRequest(request) ? welcome.find(code) : undefined
    return user ? show(reply, String(code), user.username) : refuse(reply)
  })

  app.post('/welcome', { config: { effect: 'change' } }, async (request, reply) => {
    const form = (request.body ?? {}) as SubmittedForm
    const [code, password, repeated] = [form.code, form.password, form.repeated].map(formFieldText)
    const user = code !== undefined && isLocalRequest(request) ? welcome.find(code) : undefined
    if (code === undefined || password === undefined || !user) return refuse(reply)
    if (password !== repeated) {
      return show(reply, code, user.username, { repeated: 'The passwords do not match.' })
    }
    try {
      const warnings = users.checkNewPassword(password)
      // The code is invalidated before the first `await`, so that only one of two concurrent requests is signed in.
      if (!welcome.take(code)) return refuse(reply)
      await kit.signIn(reply, await users.changePassword(user, password))
      const advice = warnings.length > 0 ? ` ${warnings.join(' ')}` : ''
      kit.notify(reply, { kind: advice === '' ? 'done' : 'warning', text: `The password was set.${advice}` })
      return await reply.redirect(`${kit.base}/overview`, 303)
    } catch (error) {
      if (!(error instanceof errors.WeakPassword)) throw error
      return show(reply, code, user.username, { password: error.message })
    }
  })
}
export default routes
