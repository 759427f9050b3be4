// Progressive enhancement of the console: without this script, its forms work by loading whole pages.
import 'htmx.org'
import { markBusyButtons } from './busy.ts'
import { copyOnClick } from './copy.ts'
import { followCalls } from './follow.ts'
import { followStream } from './live.ts'
import { showOtherPages } from './swaps.ts'
import { switchTheme } from './theme.ts'
import { keepTimesLocal } from './times.ts'

document.documentElement.classList.remove('no-script')
const stream = document.body.dataset.liveStream
if (stream !== undefined) followStream(stream)
copyOnClick()
followCalls()
markBusyButtons()
switchTheme()
showOtherPages()
keepTimesLocal()
// In a low window, the navigation has its own scrollbar, and its entry of the current page may be out of view.
document.querySelector('.pages [aria-current]')?.scrollIntoView({ block: 'nearest' })
