import type { FastifyPluginAsync } from 'fastify'
import { noticeOfAnswer, createPageRouter, formFieldText } from './page.ts'

/** The page on which users change their own password. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit, users } = app
  const { edit } = createPageRouter(app)
  const shown = {
    title: 'Your account',
    lead: 'Changing your password ends all your other sessions and login tokens.',
    action: `${kit.base}/account`,
    cancel: `${kit.base}/overview`,
    submit: 'Change password',
    fields: [
      {
        name: 'currentPassword',
        label: 'Current password',
        type: 'password',
        autocomplete: 'current-password',
        required: true
      },
      {
        name: 'newPassword',
        label: 'New password',
        type: 'password',
        autocomplete: 'new-password',
        required: true,
        hint: 'At least 6 characters. Better: 8 or more, with a letter, a digit and another character.'
      }
    ]
  }
  edit('form', { title: shown.title, path: '/account' }, () => shown, async ({ request, reply, principal, form }) => {
    const [currentPassword, newPassword] = [formFieldText(form.currentPassword), formFieldText(form.newPassword)]
    const done = await kit.api.ask(request, 'POST', '/auth/change-password', { currentPassword, newPassword })
    const user = users.get(principal.username ?? '')
    // The change of the password has ended this session, so a new one is started.
    if (user) await kit.signIn(reply, user)
    return { to: '/account', notice: noticeOfAnswer(done) }
  })
}
export default routes
