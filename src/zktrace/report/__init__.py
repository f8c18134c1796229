"""Reports: plain facts -> one HTML file that needs no network and no script. Computes nothing.

from zktrace.report.case import case_html
from zktrace.report.case_values import CaseReport
from zktrace.report.run_folder import read_run
from zktrace.report.training import training_html
from zktrace.report.attribution import attribution_html

No report needs torch, and a case report not even numpy.
"""
