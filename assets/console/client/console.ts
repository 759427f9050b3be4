// Progressive enhancement of the console: without this script, its forms work by loading whole pages.
import 'htmx.org'
import { markBusyButtons } from './busy.ts'
import { copyOnClick } from './copy.ts'
import { sendCallsInBackground } from './follow.ts'
import { followStream } from './live.ts'
import { correctHtmxSwaps } from './swaps.ts'
import { enhanceThemeForm } from './theme.ts'
import { keepTimesLocal } from './times.ts'

document.documentElement.classList.remove('no-script')
const stream = document.body.dataset.liveStream
if (stream !== undefined) followStream(stream)
copyOnClick()
sendCallsInBackground()
markBusyButtons()
enhanceThemeForm()
correctHtmxSwaps()
keepTimesLocal()
// In a low window, the navigation has its own scrollbar, and its entry of the current page may be out of view.
document.querySelector('.pages [aria-current]')?.scrollIntoView({ block: 'nearest' })
